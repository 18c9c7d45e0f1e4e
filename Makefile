# SPDX-License-Identifier: GPL-2.0
#
# make help lists the targets. The module and the programs are built under
# build/: one directory per kernel release, build/bin and build/lib for user
# space, so that several kernels can be served from one tree.

VERSION := 0.1.0
SOVERSION := 0

KDIR ?= $(shell ls -d /lib/modules/$$(uname -r)/build 2>/dev/null || \
	ls -d /usr/src/linux-headers-6.1.*[0-9]-amd64 2>/dev/null | sort -V | tail -n 1)
# The release as the running kernel tells it; Debian's kernelrelease is another.
release = $$(sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h)
W ?= 1
C ?= 0

prefix ?= /usr/local
bindir ?= $(prefix)/bin
sbindir ?= $(prefix)/sbin
libdir ?= $(prefix)/lib
includedir ?= $(prefix)/include
mandir ?= $(prefix)/share/man

# Make itself defines CC as cc, which ?= would keep.
ifeq ($(origin CC),default)
CC := gcc
endif
CFLAGS ?= -O2 -g
# Compilers differ in their warnings, so a warning is an error only in the project's own tests.
ifneq ($(filter-out 0,$(WERROR)),)
WARN := -Wall -Wextra -Werror
else
WARN := -Wall -Wextra
endif
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE $(WARN) -pthread \
	-fvisibility=default -MMD -MP -Iuapi -Ilib/include -Ilib -Itools $(CPPFLAGS) $(CFLAGS)

# gcc would compile the parts of each program in turn, and warn about that.
ifneq ($(filter -flto,$(CFLAGS)),)
ALL_CFLAGS += $(shell $(CC) -Werror -flto-partition=one -E -x c /dev/null >/dev/null 2>&1 && \
	echo -flto-partition=one)
endif

B := build
OBJ := $(B)/obj

# The file strict exists while all objects were made with WERROR. An object that was made without
# may have a warning, so with WERROR all are made once more if the file does not exist.
ifneq ($(filter -Werror,$(WARN)),)
STRICT := $(B)/strict
else
LENIENT := @rm -f $(B)/strict
endif

# libkdsm-reach has the readers of models and the search, libkdsm-omp runs OpenMP programs; libkdsm
# has the other folders.
REACH_OBJ := $(patsubst %.c,$(OBJ)/%.o,$(wildcard lib/reach/*.c))
REACH_LIBS := -lexpat -lz
OMP_OBJ := $(patsubst %.c,$(OBJ)/%.o,$(wildcard lib/omp/*.c))
LIB_OBJ := $(filter-out $(REACH_OBJ) $(OMP_OBJ),$(patsubst %.c,$(OBJ)/%.o,$(wildcard lib/*/*.c)))
LIB_LIBS := -lgmp
# libkdsm-omp takes the place of functions of libc, so there is no static one.
STATIC := libkdsm libkdsm-reach
LIBS := $(STATIC) libkdsm-omp
TOOLS := $(filter-out common,$(notdir $(patsubst %/,%,$(wildcard tools/*/))))
TOOL_BIN := $(addprefix $(B)/bin/,$(TOOLS))
TOOL_LIBS := -Wl,--as-needed -lmnl -ljson-c -luuid -lsmartcols -lm
UNIT_SRC := $(wildcard tests/unit/*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(B)/unit/%)
GUEST_SRC := $(wildcard tests/guest/*.c)
GUEST_BIN := $(GUEST_SRC:tests/guest/%.c=$(B)/guest/%)
SEARCH_BIN := $(addprefix $(B)/search/,brute mutate validate)
PROGRAMS := matmul cg is ep btree stock primes heat
PROGRAM_BIN := $(addprefix $(B)/programs/,$(PROGRAMS))

.PHONY: all user module install clean help demo check check-fast check-debug check-style bench scale packages
.PHONY: FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: module user

help:
	@echo 'make               module, library and tools'
	@echo 'make module        kdsm.ko for one kernel, into build/RELEASE/; KDIR=DIR names its build tree'
	@echo 'make user          libkdsm and the tools, into build/lib and build/bin'
	@echo 'make programs      example programs of coherent regions, into build/programs'
	@echo 'make install       all of it; DESTDIR, prefix and KDIR are honoured'
	@echo 'make install-PART  the PART module, lib, python, tools or doc; only module needs a kernel build tree'
	@echo 'make uninstall     remove what install put there; uninstall-PART removes one part'
	@echo 'make dist          the source as build/dist/kdsm-VERSION.tar.xz'
	@echo 'make deb           Debian packages, into build/deb; the module by DKMS'
	@echo 'make rpm           RPM packages of the same division, into build/rpm'
	@echo 'make demo          a cluster of two machines computes the reachable states of models'
	@echo 'make check         all tests (about 45 minutes on two idle cores)'
	@echo 'make check-fast    the tests that need no machines (about 5 minutes)'
	@echo 'make check-debug   the cluster tests on kernels with KASAN, lockdep and kmemleak, and with KCSAN'
	@echo 'make check-style   sparse, checkpatch and W=1 on both kernels'
	@echo 'make sim           the coherence protocol and locks on simulated nodes; SEEDS=N NODES=M'
	@echo 'make models        Promela models of the coherence protocol, locks and tasks, checked with spin'
	@echo 'make bench         the operations against raw verbs, in the same machines'
	@echo 'make scale         how searches scale with nodes, in virtual time: build/scale/table.md'
	@echo 'make pictures      the pictures of Documentation/design, from their sources'
	@echo 'make compile_commands.json  the commands of the compiler, for clangd'
	@echo 'make packages      install the Debian packages that all of this needs'
	@echo 'make clean         remove build/'

# --- module -----------------------------------------------------------------

# A shadow of the sources per kernel release keeps the objects of different
# kernels apart. The recipe always asks kbuild, which knows what is up to date.
module:
	@test -n "$(KDIR)" || { echo 'make: no kernel build tree; install linux-headers-amd64 or give KDIR=DIR' >&2; exit 2; }
	@test -f "$(KDIR)/include/generated/utsrelease.h" || { echo 'make: KDIR=$(KDIR) is no kernel build tree' >&2; exit 2; }
	@set -e; rel=$(release); \
	dir=$(CURDIR)/$(B)/$$rel; mkdir -p $$dir; \
	ln -sfn $(CURDIR)/uapi $$dir/uapi; ln -sf $(CURDIR)/Kbuild $$dir/Kbuild; \
	for from in kmod kmod/*/; do \
		mkdir -p $$dir/$$from; ln -sf $(CURDIR)/$$from/*.[ch] $$dir/$$from; \
	done; \
	$(MAKE) --no-print-directory -C $(KDIR) M=$$dir W=$(W) C=$(C) \
		KDSM_VERSION=$(VERSION) modules

# --- user space -------------------------------------------------------------

user: $(foreach l,$(LIBS),$(B)/lib/$l.so $(B)/lib/pkgconfig/$l.pc) $(STATIC:%=$(B)/lib/%.a) \
	$(TOOL_BIN)

# Changes when a compiler or a flag does, because objects made with others are stale then. WARN
# changes no object.
FLAGS := $(CC) $(filter-out $(WARN),$(ALL_CFLAGS))
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(subst ','\'',$(FLAGS))' | cmp -s - $@ || echo '$(subst ','\'',$(FLAGS))' >$@

$(B)/strict: FORCE
	@mkdir -p $(@D)
	@[ -e $@ ] || touch $@

$(OBJ)/%.o: %.c $(B)/flags $(STRICT)
	@mkdir -p $(@D)
	$(LENIENT)
	$(CC) $(ALL_CFLAGS) -fPIC -c -o $@ $<

$(B)/lib/libkdsm.a: $(LIB_OBJ)
$(B)/lib/libkdsm-reach.a: $(REACH_OBJ)
$(B)/lib/%.a:
	@mkdir -p $(@D)
	@# q: r would replace an earlier member of the same base name (local.o of another folder)
	rm -f $@ && $(AR) qcs $@ $^

$(B)/lib/libkdsm.so.$(SOVERSION): $(LIB_OBJ) lib/libkdsm.map
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script=lib/libkdsm.map \
		-Wl,-Bsymbolic-functions \
		-o $@ $(LIB_OBJ) $(LDFLAGS) $(LIB_LIBS)

$(B)/lib/libkdsm-reach.so.$(SOVERSION): $(REACH_OBJ) lib/libkdsm-reach.map $(B)/lib/libkdsm.so
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script=lib/libkdsm-reach.map \
		-o $@ $(REACH_OBJ) $(LDFLAGS) -L$(@D) -lkdsm $(REACH_LIBS) $(LIB_LIBS)

# It defines names of other OpenMP runtimes, so only what it says is public is visible.
$(OMP_OBJ): private ALL_CFLAGS += -fvisibility=hidden

# It has a copy of libkdsm, which calls malloc() of libc, while the program calls that of the library.
OMP_WRAP := malloc calloc realloc aligned_alloc free
$(B)/lib/libkdsm-omp.so.$(SOVERSION): $(OMP_OBJ) $(B)/lib/libkdsm.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic-functions -Wl,--exclude-libs,ALL \
		$(OMP_WRAP:%=-Wl,--wrap=%) -o $@ $^ $(LDFLAGS)

$(B)/lib/%.so: $(B)/lib/%.so.$(SOVERSION)
	ln -sf $(<F) $@

# Always: the prefix may be another than last time.
PC := $(LIBS:%=$(B)/lib/pkgconfig/%.pc)
.PHONY: $(PC)
$(PC): $(B)/lib/pkgconfig/%.pc: lib/%.pc.in
	@mkdir -p $(@D)
	sed -e 's|@prefix@|$(prefix)|; s|@libdir@|$(libdir)|; s|@includedir@|$(includedir)|; s|@version@|$(VERSION)|' $< >$@

# tools/common is shared by tools, programs and tests, and is not installed.
COMMON := $(OBJ)/tools/common.a

$(COMMON): $(patsubst %.c,$(OBJ)/%.o,$(wildcard tools/common/*.c))
	rm -f $@ && $(AR) rcs $@ $^

KNOW_VERSION := $(addprefix $(OBJ)/,tools/common/cli.o lib/core/client.o)
$(KNOW_VERSION): private ALL_CFLAGS += -DKDSM_VERSION='"$(VERSION)"'
$(KNOW_VERSION): Makefile

# Every other folder is a tool; its objects are all its C files. A tool is linked
# statically with libkdsm, so that it runs from the build directory.
define tool
$(B)/bin/$(1): $(patsubst %.c,$(OBJ)/%.o,$(wildcard tools/$(1)/*.c)) $(COMMON) $(B)/lib/libkdsm.a
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_CFLAGS) -o $$@ $$(filter %.o,$$^) -Wl,--start-group $$(filter %.a,$$^) \
		-Wl,--end-group $$(LDFLAGS) $$(LIB_LIBS) $$(TOOL_LIBS)
endef
$(foreach t,$(TOOLS),$(eval $(call tool,$(t))))
$(B)/bin/kdsm-reach: $(B)/lib/libkdsm-reach.a
$(B)/bin/kdsm-reach: private LIB_LIBS += $(REACH_LIBS)

$(B)/unit/%: $(OBJ)/tests/unit/%.o $(COMMON) $(B)/lib/libkdsm-reach.a $(B)/lib/libkdsm.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) \
		$(LIB_LIBS) $(REACH_LIBS) $(TOOL_LIBS) -lcmocka

# Some tests link objects beside those of libkdsm, which are further prerequisites.
$(B)/unit/machine: $(OBJ)/tools/kdsm-reach/defaults.o
$(B)/unit/plot: $(OBJ)/tools/kdsm-reach/plot.o
$(B)/unit/histogram: $(OBJ)/tools/kdsm-bench/histogram.o
$(B)/unit/config: $(OBJ)/tools/kdsmctl/config.o $(OBJ)/tools/kdsmctl/identity.o
$(B)/unit/metrics: $(addprefix $(OBJ)/tools/kdsmctl/,openmetrics.o latency.o names.o print.o)
$(addprefix $(B)/unit/,task task_worker task_remote task_tiles): $(OBJ)/tools/kdsm-bench/work.o
$(B)/unit/task_tiles: $(OBJ)/tools/kdsm-bench/tiles.o
LITMUS := $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/litmus/*.c))
$(B)/unit/litmus $(B)/guest/litmus: $(LITMUS)
$(B)/unit/programs: $(OBJ)/programs/tree.o
$(B)/guest/task: $(OBJ)/tools/kdsm-bench/work.o
$(B)/guest/hostile-netlink: $(OBJ)/tools/kdsmctl/key_file.o
$(B)/guest/hostile-fuzz: $(addprefix $(OBJ)/tests/guest/fuzz/,calls.o locks.o)
$(B)/guest/hostile-wire: $(addprefix $(OBJ)/tests/guest/wire/,blocks.o locks.o victim.o strangers.o)
$(B)/guest/hostile-accept: $(OBJ)/tests/guest/wire/impostor.o
$(B)/guest/hostile-wire $(B)/guest/hostile-accept: \
	$(addprefix $(OBJ)/tests/guest/wire/,attack.o meeting.o)
$(B)/guest/hostile-wire $(B)/guest/hostile-accept: private TOOL_LIBS += -lrdmacm -libverbs -lcrypto

$(B)/guest/%: $(OBJ)/tests/guest/%.o $(B)/lib/libkdsm.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) \
		$(LIB_LIBS) $(TOOL_LIBS)

# Programs by which scripts in tests/ try kdsm-reach
$(B)/search/%:
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) \
		-Wl,--end-group $(LDFLAGS) $(LIB_LIBS) $(REACH_LIBS) $(TOOL_LIBS)

$(B)/search/brute: $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/search/brute/*.c))

$(B)/search/validate: $(addprefix $(OBJ)/tests/search/,validate.o pace.o) \
	$(B)/lib/libkdsm-reach.a $(B)/lib/libkdsm.a

# mutate calls the main() of kdsm-reach.
$(OBJ)/search/main.o: tools/kdsm-reach/main.c $(B)/flags $(STRICT)
	@mkdir -p $(@D)
	$(LENIENT)
	$(CC) $(ALL_CFLAGS) -Dmain=kdsm_reach_main -c -o $@ $<

$(B)/search/mutate: $(OBJ)/tests/search/mutate.o $(OBJ)/search/main.o \
	$(patsubst %.c,$(OBJ)/%.o,$(filter-out %/main.c,$(wildcard tools/kdsm-reach/*.c))) \
	$(COMMON) $(B)/lib/libkdsm-reach.a $(B)/lib/libkdsm.a

# One C file a program, and what they share. They are not installed.
PROGRAM_OBJ := $(addprefix $(OBJ)/,programs/frame.o)

$(B)/programs/%: $(OBJ)/programs/%.o $(PROGRAM_OBJ) $(COMMON) $(B)/lib/libkdsm.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) $(LIB_LIBS) $(TOOL_LIBS) -lm

$(B)/programs/btree: $(OBJ)/programs/tree.o

.PHONY: programs
programs: $(PROGRAM_BIN)

# A 32-bit program without a library, as there need be none of 32 bits; nor has
# the compiler to know where the kernel's headers for this machine are.
$(B)/guest/compat: tests/guest/compat.c $(B)/flags $(STRICT) uapi/kdsm/uapi.h uapi/kdsm/uapi_task.h
	@mkdir -p $(@D)
	$(LENIENT)
	$(CC) -m32 -std=gnu11 -O2 -g $(WARN) -ffreestanding -fno-stack-protector \
		-fno-pie -static -nostdlib -Iuapi \
		-idirafter /usr/include/x86_64-linux-gnu -o $@ $<

# Protocol files of the module, unmodified, on simulated nodes: one program per folder of
# tests/sim, on the harness that they share. tests/sim/include stands in for the kernel's
# headers. sim-coherence-few has signatures that are soon full, and soon protects blocks
# that are not written.
SIM_CFLAGS := -std=gnu11 -D_GNU_SOURCE -U_FORTIFY_SOURCE $(WARN) \
	-Wno-sign-compare -Wno-unused-parameter -Wno-missing-field-initializers \
	-Wno-address-of-packed-member -MMD -MP \
	-Itests/sim/include -Iuapi -Ikmod -Itests/sim -Itools $(CFLAGS)
SIM_BIN := $(addprefix $(B)/sim-,coherence coherence-few lock line)
SIM_HARNESS := $(wildcard tests/sim/harness/*.c)
# Without shrink.c, which needs the kernel: a simulated thread asks for memory instead.
SIM_COHERENCE := $(SIM_HARNESS) $(filter-out %/shrink.c, \
	$(wildcard tests/sim/coherence/*.c tests/litmus/*.c kmod/coherence/*.c))
SIM_LOCK := $(SIM_HARNESS) $(wildcard tests/sim/lock/*.c) kmod/topology.c \
	$(addprefix kmod/lock/,turn.c network.c order.c home.c admit.c errand.c survey.c \
	gate.c pass.c reader.c word.c)
# Files of the library, which find its headers first
SIM_LINE := $(wildcard tests/sim/line/*.c) $(addprefix lib/core/,argument.c error.c thread.c) \
	$(addprefix lib/lock/,wait_queue.c wait_queue_sleep.c condition.c semaphore.c)
# Functions that the linker wraps, to put deliberate defects in between
$(B)/sim-coherence $(B)/sim-coherence-few: private SIM_WRAP := kdsm_block_brought \
	kdsm_stamp_raise kdsm_twin_make kdsm_twin_merge kdsm_twin_is_here \
	kdsm_block_in_doubt kdsm_race_found \
	kdsm_signature_add kdsm_broadcast_begin kdsm_broadcast_end kdsm_batch_post kdsm_message kdsm_ownership_take \
	kdsm_ownership_read kdsm_block_learn kdsm_block_put kdsm_release_acquire \
	kdsm_release_refresh kdsm_acquire_until kdsm_word_update kdsm_block_unpack \
	kdsm_block_cached
SEEDS ?= 1000
NODES ?= 2-8

$(OBJ)/sim/%.o: %.c $(B)/flags $(STRICT)
	@mkdir -p $(@D)
	$(LENIENT)
	$(CC) $(SIM_CFLAGS) -DKDSM_IDLERS=3 -c -o $@ $<

$(OBJ)/sim-few/%.o: %.c $(B)/flags $(STRICT)
	@mkdir -p $(@D)
	$(LENIENT)
	$(CC) $(SIM_CFLAGS) -DKDSM_NOTICES_MAX=5 -DKDSM_IDLE_MAX=2 -DKDSM_IDLERS=0 -c -o $@ $<

$(OBJ)/sim-line/%.o: %.c $(B)/flags $(STRICT)
	@mkdir -p $(@D)
	$(LENIENT)
	$(CC) -Ilib/include -Ilib $(SIM_CFLAGS) -c -o $@ $<

$(B)/sim-coherence: $(SIM_COHERENCE:%.c=$(OBJ)/sim/%.o)
$(B)/sim-coherence-few: $(SIM_COHERENCE:%.c=$(OBJ)/sim-few/%.o)
$(B)/sim-lock: $(SIM_LOCK:%.c=$(OBJ)/sim/%.o)
$(B)/sim-line: $(SIM_LINE:%.c=$(OBJ)/sim-line/%.o) $(SIM_HARNESS:%.c=$(OBJ)/sim/%.o)
$(SIM_BIN): $(COMMON)
	$(CC) $(CFLAGS) -o $@ $(filter %.o,$^) $(COMMON) $(LDFLAGS) $(SIM_WRAP:%=-Wl,--wrap=%)

.PHONY: sim
sim: $(SIM_BIN)
	set -e; for program in $^; do $$program --seeds $(SEEDS) --nodes $(NODES); done

.PHONY: models
models: packages
	@tests/spin/check -l

# A plugin of QEMU that counts instructions, and the programs that it needs in the machines.
COUNTS := $(addprefix $(B)/counts/,plugin.so raw say mark theft contend)

$(B)/counts/plugin.so: $(OBJ)/tests/counts/plugin.o
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -shared -o $@ $^ $(LDFLAGS)

$(B)/counts/%: $(OBJ)/tests/counts/%.o $(B)/lib/libkdsm.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDFLAGS) $(LIB_LIBS) -Wl,--as-needed -lrdmacm -libverbs

.PHONY: counts
counts: $(COUNTS)

# OpenMP programs, unchanged, by both compilers: with libkdsm-omp, and with the compiler's own runtime
OMP_TESTS := $(patsubst tests/omp/%.c,%,$(wildcard tests/omp/*.c))
OMP_BIN := $(OMP_TESTS:%=$(B)/omp/%-gcc) $(OMP_TESTS:%=$(B)/omp/%-gcc-own)
define openmp
$(B)/omp/%-$(1).o: tests/omp/%.c
	@mkdir -p $$(@D)
	$(1) -fopenmp -O2 -g $$(OMP_FLAGS) -c -o $$@ $$<

$(B)/omp/%-$(1)-own: $(B)/omp/%-$(1).o
	$(1) -fopenmp -o $$@ $$< -latomic

$(B)/omp/%-$(1): $(B)/omp/%-$(1).o $(B)/lib/libkdsm-omp.so
	$(1) -o $$@ $$< -L$(B)/lib -lkdsm-omp -Wl,-rpath,'$$$$ORIGIN/../lib'
endef
$(foreach c,gcc clang,$(eval $(call openmp,$(c))))
# Its instructions would be atomic on one node only.
$(B)/omp/heap-gcc.o: private OMP_FLAGS := -fno-inline-atomics

.PHONY: tests
tests: user programs counts $(UNIT_BIN) $(GUEST_BIN) $(SEARCH_BIN) $(OMP_BIN)

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)

# --- the rest ---------------------------------------------------------------

include packaging/install.mk
include packaging/packages.mk

# For clangd and its like. Everything is compiled once more, because bear notes what it sees.
.PHONY: compile_commands.json
compile_commands.json:
	rm -rf $(B)/bear
	mkdir -p $(B)/bear
	bear --output $(B)/bear/commands -- $(MAKE) B=$(B)/bear module user programs tests
	sed 's,$(CURDIR)/$(B)/bear/[^/" ]*/kmod/,$(CURDIR)/kmod/,' $(B)/bear/commands >$@
	rm -rf $(B)/bear

packages:
	@tests/packages

demo: packages
	@tests/demo

check: packages
	@tests/check

check-fast: packages
	@tests/check -f

check-debug: packages
	@tests/check -k debug; status=$$?; \
	tests/check -k kcsan && exit $$status

check-style: packages
	@tests/style

# Each picture is committed with its source.
.PHONY: pictures
pictures: $(patsubst %.txt,%.svg,$(wildcard Documentation/pictures/*.txt))

Documentation/pictures/%.svg: Documentation/pictures/%.txt Documentation/pictures/draw
	awk -f Documentation/pictures/draw $< >$@

bench: packages
	@tests/bench

scale: packages
	@tests/scale

clean:
	rm -rf $(B)
