# SPDX-License-Identifier: GPL-2.0
#
# make install and make uninstall, and their parts. Only install-module needs a build tree of a
# kernel.
#
# FILES_PART lists the files of a part as words MODE:SOURCE:TARGET. install-PART copies what the
# list names, and uninstall-PART removes it. The mode "link" makes TARGET a symbolic link to SOURCE.

docdir ?= $(prefix)/share/doc/kdsm
unitdir ?= $(prefix)/lib/systemd/system
udevrulesdir ?= $(prefix)/lib/udev/rules.d
sysusersdir ?= $(prefix)/lib/sysusers.d
completionsdir ?= $(prefix)/share/bash-completion/completions
modulesdir ?= /lib/modules
# Where the interpreter looks: Debian has its own folder. Empty if there is no Python.
PYTHON ?= python3
python_path := import sys, sysconfig; \
	print("$(prefix)/lib/python%d.%d/" % sys.version_info[:2] + \
	("dist" if "deb_system" in sysconfig.get_scheme_names() else "site") + "-packages")
pythondir ?= $(shell $(PYTHON) -c '$(python_path)' 2>/dev/null)

# $(call put,MODE,DIRECTORY,FILE...)
put = $(foreach f,$(3),$(1):$(f):$(2)/$(notdir $(f)))
# $(call pages,SECTION...): manual pages
pages = $(foreach s,$(1),$(call put,644,$(mandir)/man$(s),$(wildcard Documentation/man/man$(s)/*.$(s))))

FILES_lib = $(call put,755,$(libdir),$(LIBS:%=$(B)/lib/%.so.$(SOVERSION))) \
	$(foreach l,$(LIBS),link:$(l).so.$(SOVERSION):$(libdir)/$(l).so) \
	$(call put,644,$(libdir),$(STATIC:%=$(B)/lib/%.a)) \
	$(call put,644,$(libdir)/pkgconfig,$(LIBS:%=$(B)/lib/pkgconfig/%.pc)) \
	$(call put,644,$(includedir)/kdsm,$(wildcard lib/include/kdsm/*.h* uapi/kdsm/*.h)) \
	$(call pages,3)

FILES_python = $(if $(pythondir),$(call put,644,$(pythondir)/kdsm,$(wildcard python/kdsm/*.py)))

FILES_tools = $(call put,755,$(bindir),$(filter-out %/kdsmctl,$(TOOL_BIN))) \
	$(call put,755,$(sbindir),$(B)/bin/kdsmctl) \
	$(call put,644,$(unitdir),$(wildcard system/*.service)) \
	$(call put,644,$(udevrulesdir),$(wildcard system/*.rules)) \
	$(foreach f,$(wildcard system/*.sysusers),644:$(f):$(sysusersdir)/$(basename $(notdir $(f))).conf) \
	$(call put,644,$(completionsdir),$(wildcard system/completion/*)) \
	$(call put,644,$(docdir)/examples,$(wildcard system/*.conf)) \
	$(call put,644,$(docdir)/examples/dass,$(wildcard programs/dass/*.dass)) \
	$(call pages,1 5 7 8)

# The pages and pictures keep their places, so their links lead to files.
PAGES = README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md \
	$(wildcard LICENSES/* Documentation/*.md Documentation/*/*.md Documentation/netlink/*.yaml \
	Documentation/pictures/*.svg)
# What the pages run
EXAMPLES = programs/heat.c tests/models/philosophers-10.pnml
FILES_doc = $(foreach f,$(PAGES),644:$(f):$(docdir)/$(f)) $(call put,644,$(docdir)/examples,$(EXAMPLES))

# $(call each,PART,COMMAND): run COMMAND for each file of a part, with $$mode, $$source and $$target
each = set -e; for file in $(FILES_$(1)); do \
		mode=$${file%%:*} file=$${file\#*:}; \
		source=$${file%%:*} target='$(DESTDIR)'$${file\#*:}; \
		$(2); \
	done

install-lib: $(foreach l,$(LIBS),$(B)/lib/$l.so $(B)/lib/pkgconfig/$l.pc) $(STATIC:%=$(B)/lib/%.a)
install-tools: $(TOOL_BIN)
install-lib install-python install-tools install-doc: install-%:
	@$(call each,$*,if [ $$mode = link ]; then ln -sfn "$$source" "$$target"; \
		else install -D -m $$mode "$$source" "$$target"; fi)
	@$(if $(filter lib,$*),$(ldconfig))

# Directories that only kdsm uses go as well, and what Python has compiled. Others may have been
# there before.
uninstall-lib uninstall-python uninstall-tools uninstall-doc: uninstall-%:
	@$(call each,$*,rm -f "$$target")
	@$(if $(filter python,$*),$(pythondir:%=rm -rf '$(DESTDIR)%/kdsm/__pycache__'))
	@for dir in '$(DESTDIR)$(includedir)/kdsm' '$(DESTDIR)$(docdir)' \
		    $(pythondir:%='$(DESTDIR)%/kdsm'); do \
		[ ! -d "$$dir" ] || find "$$dir" -depth -type d -empty -delete; \
	done
	@$(if $(filter lib,$*),$(ldconfig))

# A staged tree has no cache of libraries and no list of modules.
ldconfig = $(if $(DESTDIR),:,ldconfig)
depmod = $(if $(DESTDIR),:,depmod $$rel)

install-module: module
	@set -e; rel=$(release); \
	install -D -m 644 $(B)/$$rel/kdsm.ko '$(DESTDIR)$(modulesdir)'/$$rel/extra/kdsm.ko; \
	$(depmod)

uninstall-module:
	@[ -f '$(KDIR)/include/generated/utsrelease.h' ] || exit 0; rel=$(release); \
	[ -e '$(DESTDIR)$(modulesdir)'/$$rel/extra/kdsm.ko ] || exit 0; \
	rm -f '$(DESTDIR)$(modulesdir)'/$$rel/extra/kdsm.ko && \
	{ rmdir '$(DESTDIR)$(modulesdir)'/$$rel/extra 2>/dev/null || :; } && $(depmod)

PARTS := module lib python tools doc
install: $(PARTS:%=install-%)
uninstall: $(PARTS:%=uninstall-%)
.PHONY: uninstall $(PARTS:%=install-%) $(PARTS:%=uninstall-%)
