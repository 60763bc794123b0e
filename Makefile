# SPDX-License-Identifier: MIT
# Builds brim: the library, the Lua module and the executable that embeds both.
#
#   make             everything into build/
#   make run         builds, then makes and checks an 8 EiB XFS
#   make test        the whole suite; SAN=address,undefined and GC=stress vary it
#   make help        the other targets and the variables
#
# CC, CFLAGS, LDFLAGS and CPPFLAGS are the user's and come last on each command
# line. What brim itself needs lives in variables of its own instead of in an
# `override CFLAGS +=`, which would append once more in every sub-make.

CC ?= cc
AR ?= ar
PKG_CONFIG ?= pkg-config
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
DESTDIR ?=
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCDIR ?= $(PREFIX)/include
LUA_LMOD ?= $(PREFIX)/share/lua/5.4
LUA_CMOD ?= $(PREFIX)/lib/lua/5.4
LUA ?= lua5.4
LIBFLAG ?= -shared
JOBS ?= 2
BUILD ?= build

ifeq ($(origin CC),default)
CC := cc
endif

version := $(shell sed -n 's/^\#define BRIM_VERSION "\(.*\)"/\1/p' core/brim_version.h)
so_version := $(shell sed -n 's/^\#define BRIM_VERSION "\([0-9]*\.[0-9]*\).*"/\1/p' core/brim_version.h)

# ------------------------------------------------------------ what is there

pc_has = $(shell $(PKG_CONFIG) --exists '$(1)' 2>/dev/null && echo yes)

lua_pc := $(firstword $(foreach n,lua5.4 lua-5.4 lua54 lua,\
	$(if $(call pc_has,$n >= 5.4 $n < 5.5),$n)))
LUA_CFLAGS ?= $(if $(lua_pc),$(shell $(PKG_CONFIG) --cflags $(lua_pc)))

# Linked statically where the archive is there, so that build/brim runs where
# Lua is not installed.
lua_archive := $(if $(lua_pc),$(firstword $(wildcard $(foreach d,\
	$(shell $(PKG_CONFIG) --variable=libdir $(lua_pc)),\
	$(d)/lib$(lua_pc).a $(d)/liblua5.4.a $(d)/liblua54.a $(d)/liblua.a))))
LUA_LIBS ?= $(if $(lua_archive),$(lua_archive) -lm -ldl,$(if $(lua_pc),\
	$(shell $(PKG_CONFIG) --libs $(lua_pc))))

# $(1): pkg-config module, $(2): macro and makefile flag. Optional each: the
# code has a way without it.
define detect
ifeq ($$(call pc_has,$(1)),yes)
HAVE_$(2) := 1
feature_flags += -DHAVE_$(2)=1 $$(shell $$(PKG_CONFIG) --cflags $(1))
libs_$(2) := $$(shell $$(PKG_CONFIG) --libs $(1))
endif
endef
$(eval $(call detect,libisal,ISAL))
$(eval $(call detect,liburing,URING))
$(eval $(call detect,blkid,BLKID))
$(eval $(call detect,uuid,UUID))
$(eval $(call detect,libedit,EDIT))

# nbdkit's headers make the plugin that serves targets; `brim serve` needs it.
nbdkit_plugin := $(if $(call pc_has,nbdkit >= 1.30),$(wildcard core/nbdkit_plugin.c))

pc_requires := $(strip $(if $(HAVE_ISAL),libisal) $(if $(HAVE_URING),liburing) \
	$(if $(HAVE_BLKID),blkid))
core_libs := $(libs_ISAL) $(libs_URING) $(libs_BLKID) -pthread
lua_side_libs := $(libs_UUID) $(libs_EDIT)

# dkjson and argparse are pure Lua and go into the executable.
lua_dirs := $(if $(lua_pc),$(shell $(PKG_CONFIG) --variable=INSTALL_LMOD $(lua_pc))) \
	/usr/local/share/lua/5.4 /usr/share/lua/5.4 /usr/share/lua/common
DKJSON ?= $(firstword $(wildcard $(addsuffix /dkjson.lua,$(lua_dirs))))
ARGPARSE ?= $(firstword $(wildcard $(addsuffix /argparse.lua,$(lua_dirs)) \
	$(addsuffix /argparse/init.lua,$(lua_dirs))))

# -------------------------------------------------------------------- flags

empty :=
comma := ,
B := $(BUILD)$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))

san_flags := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
	-fno-sanitize-recover=all)
warnings := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
	-Wmissing-prototypes
brim_cflags = -std=gnu11 -ffp-contract=off -fPIC -fvisibility=hidden -pthread $(warnings) \
	-D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 $(feature_flags) $(san_flags) \
	$(CPPFLAGS) $(CFLAGS)
brim_ldflags = -pthread $(san_flags) $(LDFLAGS)

# -------------------------------------------------------------------- files

lua_side := $(wildcard core/lua_*.c)
lib_src := $(filter-out $(lua_side) core/main.c core/embed.c \
	core/drive_shim.c $(wildcard core/nbdkit_*.c),$(wildcard core/*.c))
lib_obj := $(lib_src:core/%.c=$B/core/%.o)
lua_obj := $(lua_side:core/%.c=$B/core/%.o)
main_obj := $(if $(wildcard core/main.c),$B/core/main.o $B/embedded.o)

lua_src := $(shell find lua/brim -name '*.lua' | LC_ALL=C sort)
scripts := $(sort $(wildcard scripts/*.lua))
embedded := $(lua_src) $(scripts)

spec_c := $(wildcard spec/core/*.c)
spec_bin := $(spec_c:spec/core/%.c=$B/spec/%)

lib_a := $B/libbrim.a
lib_so := $B/libbrim.so.$(version)
module := $B/lua/brim/core.so
exe := $B/brim
plugin := $(if $(nbdkit_plugin),$B/nbdkit-brim-plugin.so)
shim := $B/brim-drive-shim.so
public_headers := core/brim.h core/brim_drive.h core/brim_fill.h core/brim_overlay.h core/brim_plan.h core/brim_run.h core/brim_scan.h core/brim_version.h core/brim_workload.h core/brim_walk.h

# ------------------------------------------------------------------ targets

.PHONY: all lib module exe plugin shim run test bench install install-module \
	uninstall clean dist deps deps-test deps-fuzz lint format fuzz fuzz-built \
	help spec-programs test-built run-built oracles campaign campaign-f2fs fuzz-mkfs-f2fs FORCE
.DELETE_ON_ERROR:

all: lib module exe plugin shim

help:
	@sed -n 's/^# \{0,1\}//; 2,7p' $(firstword $(MAKEFILE_LIST))
	@echo 'Targets: all lib module exe plugin shim run test bench lint format oracles'
	@echo '         campaign (N=5000 SEED=1: brim check against xfs_repair; as root)'
	@echo '         fuzz-mkfs-f2fs (N=300 SEED=1: brim mkfs.f2fs against mkfs.f2fs)'
	@echo '         campaign-f2fs (N=10 SEED=1: the cadence of GC, predicted against kernels)'
	@echo '         install install-module uninstall dist deps deps-test clean'
	@echo 'Variables: CC CFLAGS LDFLAGS PREFIX DESTDIR LUA_CFLAGS LUA_LIBS'
	@echo '           LUA_LMOD LUA_CMOD SAN=address,undefined GC=stress JOBS BUILD'
	@echo '           RELEASES="trixie sid" (of Debian, whose tools `make oracles` fetches)'

lib: $(lib_a) $B/libbrim.so
module: $(module)
exe: $(exe)
plugin: $(plugin)
shim: $(shim)

# deps may install what the feature detection above looks for: a new make.
sub_make = $(MAKE) $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))

run: deps
	+@$(sub_make) --no-print-directory run-built

run-built: exe
	$(exe) xfs-8eb

test: deps-test
	@timeout 150 bash spec/tools/oracles --once || true
	+@$(sub_make) --no-print-directory test-built

test-built: all spec-programs
	@B='$B' GC='$(GC)' SAN='$(SAN)' LUA='$(LUA)' CC='$(CC)' JOBS='$(JOBS)' \
		MAKE='$(MAKE)' bash spec/run-tests $(TESTS)

spec-programs: $(spec_bin)

bench: all
	@B='$B' LUA='$(LUA)' $(exe) run spec/bench/bench.lua $(BENCH)

deps:
	@bash .ci/deps build

deps-test:
	@bash .ci/deps build test

deps-fuzz:
	@bash .ci/deps build fuzz

# Other generations of the reference tools, for the tests to judge by too.
# brim check against xfs_repair, on used and on damaged filesystems; as root.
campaign: exe
	@BUILD='$B' BRIM='$(exe)' LUA='$(LUA)' N='$(or $(N),5000)' SEED='$(or $(SEED),1)' \
		bash spec/campaign/run

# brim mkfs.f2fs against mkfs.f2fs, byte for byte, with N random sets of options for each release.
fuzz-mkfs-f2fs: all
	@B='$B' LUA='$(LUA)' BRIM_F2FS_CASES='$(or $(N),300)' BRIM_F2FS_SEED='$(or $(SEED),1)' \
		UNIT_TIMEOUT_S=7200 bash spec/run-tests spec/f2fs_identity_spec.lua

# What brim says of F2FS's GC thread and its knobs, against every user-mode Linux that is here.
campaign-f2fs: exe
	@BRIM_BUILD='$B' $(exe) run spec/campaign/f2fs_cadence.lua $(or $(N),10) $(or $(SEED),1)

oracles:
	@bash spec/tools/oracles $(RELEASES)

# --------------------------------------------------------------------- rules

# Rewritten only when it differs, so that other flags or newly found libraries
# rebuild what they touch.
$B/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(CC) $(brim_cflags) $(LUA_CFLAGS)' | cmp -s - $@ || \
		printf '%s\n' '$(CC) $(brim_cflags) $(LUA_CFLAGS)' > $@

$(lib_obj): $B/core/%.o: core/%.c $B/flags
	@mkdir -p $(@D)
	$(CC) $(brim_cflags) -MMD -MP -c -o $@ $<

$(lua_obj) $B/core/main.o: $B/core/%.o: core/%.c $B/flags
	@$(if $(LUA_CFLAGS)$(lua_pc),,echo 'brim: no Lua 5.4 headers found (Debian: \
		apt install liblua5.4-dev, or set LUA_CFLAGS)' >&2; exit 1)
	@mkdir -p $(@D)
	$(CC) $(brim_cflags) $(LUA_CFLAGS) -MMD -MP -c -o $@ $<

$(lib_a): $(lib_obj)
	@rm -f $@
	$(AR) rcs $@ $^

$(lib_so): $(lib_obj) core/brim.map
	$(CC) $(brim_ldflags) -shared $(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
		-Wl,-soname,libbrim.so.$(so_version) -Wl,--version-script=core/brim.map -o $@ $(lib_obj) $(core_libs)

$B/libbrim.so: $(lib_so)
	@ln -sf libbrim.so.$(version) $B/libbrim.so.$(so_version)
	@ln -sf libbrim.so.$(so_version) $@

# The module leaves Lua's own symbols to the interpreter that loads it.
$(module): $(lua_obj) $(lib_a)
	@mkdir -p $(@D)
	$(CC) $(brim_ldflags) $(LIBFLAG) -Wl,--exclude-libs,ALL -o $@ \
		$(lua_obj) $(lib_a) $(core_libs) $(lua_side_libs)

# -Wl,-E: C modules that a script requires find Lua's symbols in here.
$(exe): $(main_obj) $(lua_obj) $(lib_a)
	$(CC) $(brim_ldflags) -Wl,-E -o $@ $(main_obj) $(lua_obj) $(lib_a) \
		$(LUA_LIBS) $(core_libs) $(lua_side_libs)

# nbdkit has the symbols that are missing; of the archive's none is shown.
$B/nbdkit-brim-plugin.so: $(nbdkit_plugin) $(lib_a) $B/flags
	$(CC) $(brim_cflags) $(shell $(PKG_CONFIG) --cflags nbdkit) -MMD -MP \
		-MF $B/core/nbdkit_plugin.d $(brim_ldflags) -shared \
		-Wl,--exclude-libs,ALL -o $@ $(nbdkit_plugin) $(lib_a) $(core_libs)

# Loaded into any program: it needs libc only, and binds it at load.
$(shim): core/drive_shim.c $(lib_a) $B/flags
	$(CC) $(filter-out -D_FILE_OFFSET_BITS=64,$(brim_cflags)) -MMD -MP \
		-MF $B/core/drive_shim.d $(brim_ldflags) -shared -Wl,-z,now \
		-Wl,--as-needed -Wl,--exclude-libs,ALL -o $@ $< $(lib_a) \
		$(core_libs) -ldl

# embed runs on the build machine.
$B/embed: core/embed.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 $(warnings) $(LUA_CFLAGS) -o $@ $< $(LUA_LIBS)

$B/embedded.list: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(embedded) $(DKJSON) $(ARGPARSE)' | cmp -s - $@ || \
		printf '%s\n' '$(embedded) $(DKJSON) $(ARGPARSE)' > $@

$B/embedded.c: $B/embed $B/embedded.list $(embedded) $(DKJSON) $(ARGPARSE)
	@$(if $(and $(DKJSON),$(ARGPARSE)),,echo 'brim: dkjson.lua and argparse.lua \
		not found (Debian: apt install lua-dkjson lua-argparse, or set DKJSON \
		and ARGPARSE)' >&2; exit 1)
	$B/embed $(embedded) dkjson=$(DKJSON) argparse=$(ARGPARSE) > $@

$B/embedded.o: $B/embedded.c $B/flags
	$(CC) $(brim_cflags) -Icore -c -o $@ $<

# Tests of the core link the archive, and so reach hidden symbols too.
$(spec_bin): $B/spec/%: spec/core/%.c $(lib_a) $B/flags
	@mkdir -p $(@D)
	$(CC) $(brim_cflags) -Icore -MMD -MP -o $@ $< $(brim_ldflags) $(lib_a) \
		$(core_libs) -lm

-include $(lib_obj:.o=.d) $(lua_obj:.o=.d) $B/core/main.d \
	$B/core/nbdkit_plugin.d $B/core/drive_shim.d \
	$(addsuffix .d,$(spec_bin))

# ----------------------------------------------------------------- packaging

$B/brim.pc: core/brim.pc.in core/brim_version.h FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCDIR@|$(INCDIR)|; s|@VERSION@|$(version)|' \
		-e 's|@REQUIRES@|$(pc_requires)|' $< > $@

install: all $B/brim.pc
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR)/pkgconfig \
		$(DESTDIR)$(INCDIR)
	install -m 755 $(exe) $(DESTDIR)$(BINDIR)/brim
	install -m 644 $(public_headers) $(DESTDIR)$(INCDIR)
	install -m 644 $(lib_a) $(DESTDIR)$(LIBDIR)
	install -m 755 $(lib_so) $(DESTDIR)$(LIBDIR)
	ln -sf libbrim.so.$(version) $(DESTDIR)$(LIBDIR)/libbrim.so.$(so_version)
	ln -sf libbrim.so.$(so_version) $(DESTDIR)$(LIBDIR)/libbrim.so
	install -m 644 $B/brim.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	$(if $(plugin),install -d $(DESTDIR)$(LIBDIR)/nbdkit/plugins)
	$(if $(plugin),install -m 755 $(plugin) $(DESTDIR)$(LIBDIR)/nbdkit/plugins)
	install -d $(DESTDIR)$(LIBDIR)/brim
	install -m 755 $(shim) $(DESTDIR)$(LIBDIR)/brim

install-module: module
	install -d $(DESTDIR)$(LUA_CMOD)/brim $(DESTDIR)$(LUA_LMOD)/brim/scripts
	install -m 755 $(module) $(DESTDIR)$(LUA_CMOD)/brim/core.so
	for f in $(embedded:lua/%=%); do case $$f in \
		brim/*) install -D -m 644 lua/$$f $(DESTDIR)$(LUA_LMOD)/$$f;; \
		*) install -m 644 $$f $(DESTDIR)$(LUA_LMOD)/brim/scripts;; \
	esac || exit 1; done

uninstall:
	rm -f $(DESTDIR)$(BINDIR)/brim $(addprefix $(DESTDIR)$(INCDIR)/,$(notdir $(public_headers))) \
		$(DESTDIR)$(LIBDIR)/libbrim.a \
		$(DESTDIR)$(LIBDIR)/libbrim.so $(DESTDIR)$(LIBDIR)/libbrim.so.* \
		$(DESTDIR)$(LIBDIR)/pkgconfig/brim.pc \
		$(DESTDIR)$(LIBDIR)/nbdkit/plugins/nbdkit-brim-plugin.so
	rm -rf $(DESTDIR)$(LIBDIR)/brim
	rm -rf $(DESTDIR)$(LUA_LMOD)/brim $(DESTDIR)$(LUA_CMOD)/brim

dist_files := $(wildcard Makefile README.md LICENSE CHANGELOG.md *.rockspec \
	.luacheckrc .busted .clang-format .editorconfig .gitignore .ci core lua \
	scripts spec examples)

dist:
	@mkdir -p $B
	tar -czf $B/brim-$(version).tar.gz --transform 's|^|brim-$(version)/|' \
		--sort=name --owner=0 --group=0 --numeric-owner $(dist_files)
	@echo $B/brim-$(version).tar.gz

clean:
	rm -rf '$(BUILD)'

# ---------------------------------------------------------------------- fuzz

# Each target for FUZZ_S seconds, from the seeds and what earlier runs found.
FUZZ_S ?= 300
FUZZ_CC ?= clang
F := $(BUILD)/fuzz
fuzz_names := $(patsubst spec/fuzz/fuzz_%.c,%,$(wildcard spec/fuzz/fuzz_*.c))
fuzz_bin := $(fuzz_names:%=$F/fuzz_%)
fuzz_obj := $(lib_src:core/%.c=$F/core/%.o)
fuzz_flags := -O2 -g -fno-omit-frame-pointer -fno-sanitize-recover=all \
	-fsanitize=fuzzer-no-link,address,undefined -DOVERLAP_MAX=262144

$(fuzz_obj): $F/core/%.o: core/%.c $B/flags
	@mkdir -p $(@D)
	$(FUZZ_CC) $(brim_cflags) $(fuzz_flags) -MMD -MP -c -o $@ $<

$F/libbrim.a: $(fuzz_obj)
	@rm -f $@
	$(AR) rcs $@ $^

$(fuzz_bin): $F/%: spec/fuzz/%.c $F/libbrim.a
	$(FUZZ_CC) $(brim_cflags) $(fuzz_flags) -fsanitize=fuzzer -Icore -MMD -MP \
		-o $@ $< $F/libbrim.a $(core_libs)

$F/seeds: spec/fuzz/seeds.c $(lib_a)
	@mkdir -p $(@D)
	$(CC) $(brim_cflags) -Icore -MMD -MP -o $@ $< $(brim_ldflags) $(lib_a) \
		$(core_libs)

fuzz: deps-fuzz
	+@$(sub_make) --no-print-directory fuzz-built

fuzz-built: $(fuzz_bin) $F/seeds
	@mkdir -p $(fuzz_names:%=$F/corpus/%) $F/found
	@$F/seeds $F/corpus
	@for t in $(fuzz_names); do \
		$F/fuzz_$$t -max_total_time=$(FUZZ_S) -timeout=20 -rss_limit_mb=2048 \
			-artifact_prefix=$F/found/$$t- $F/corpus/$$t 2>$F/$$t.log || \
			{ tail -n 40 $F/$$t.log; exit 1; }; \
		echo "fuzz_$$t: $$(tail -n 1 $F/$$t.log)"; \
	done

-include $(fuzz_obj:.o=.d) $(fuzz_bin:=.d) $F/seeds.d

# ---------------------------------------------------------------------- lint

c_files := $(wildcard core/*.[ch] spec/core/*.[ch] spec/fuzz/*.[ch] examples/*.c)

lint:
	luacheck -q .
	cppcheck -q --std=c11 --enable=warning,portability --error-exitcode=1 \
		--inline-suppr -Icore $(feature_flags) core
	clang-format --dry-run --Werror $(c_files)

format:
	clang-format -i $(c_files)
