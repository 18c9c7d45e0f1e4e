# SPDX-License-Identifier: GPL-2.0
#
# make dist, deb and rpm: the source and the packages. All of them take the files that git tracks, as
# they are in the working tree, and work on a copy under build/. The version of the packages stands
# in the Makefile; that of debian/changelog must agree.

SOURCE := kdsm-$(VERSION)
DIST := $(B)/dist/$(SOURCE).tar.xz

# The module's source for DKMS, where the packages kdsm-dkms have it
srcdir ?= /usr/src
install-dkms:
	@set -e; dir='$(DESTDIR)$(srcdir)/$(SOURCE)'; \
	for file in Kbuild kmod/*.[ch] kmod/*/*.[ch] uapi/*/*.h; do \
		install -D -m 644 $$file "$$dir/$$file"; \
	done; \
	sed 's/#MODULE_VERSION#/$(VERSION)/' packaging/dkms.conf >"$$dir/dkms.conf"; \
	chmod 644 "$$dir/dkms.conf"

# The same tree gives the same bytes: the order, owners and modes are fixed, and the time is that of
# the last commit.
dist:
	@git rev-parse >/dev/null 2>&1 || { echo 'make: dist needs the git repository' >&2; exit 2; }
	@mkdir -p $(dir $(DIST))
	@git ls-files -z | LC_ALL=C sort -z | \
	tar -cf $(B)/dist/$(SOURCE).tar --no-recursion --mtime=@$$(git log -1 --format=%ct) \
		--owner=0 --group=0 --numeric-owner --mode=u+rwX,go=rX --format=gnu \
		--transform='s,^,$(SOURCE)/,S' --null -T -
	xz -9 -T 1 -f $(B)/dist/$(SOURCE).tar

# The file source notes what the packages were made from. They are not made again from the same.
deb: dist
	@[ "$$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)" = $(VERSION) ] || \
		{ echo 'make: debian/changelog is not of version $(VERSION)' >&2; exit 2; }
	@! sha256sum --status -c $(B)/deb/source 2>/dev/null || exit 0; set -ex; \
	rm -rf $(B)/deb; \
	mkdir -p $(B)/deb; \
	tar -xJf $(DIST) -C $(B)/deb; \
	(cd $(B)/deb/$(SOURCE) && dpkg-buildpackage -us -uc $(DEB_FLAGS)); \
	sha256sum $(DIST) >$(B)/deb/source

# On a system without a database of RPM packages rpmbuild cannot look for what the build needs.
rpm: dist
	@! sha256sum --status -c $(B)/rpm/source 2>/dev/null || exit 0; set -ex; \
	rm -rf $(B)/rpm; \
	mkdir -p $(B)/rpm/SPECS; \
	sed 's/@version@/$(VERSION)/' packaging/kdsm.spec.in >$(B)/rpm/SPECS/kdsm.spec; \
	rpmbuild -ba $(if $(wildcard /etc/debian_version),--nodeps) $(RPM_FLAGS) \
		--define '_topdir $(CURDIR)/$(B)/rpm' --define '_sourcedir $(CURDIR)/$(B)/dist' \
		$(B)/rpm/SPECS/kdsm.spec; \
	sha256sum $(DIST) >$(B)/rpm/source

.PHONY: dist deb rpm install-dkms
