# The C world's targets over cargo. `make help` lists them.

CC ?= cc
CFLAGS ?= -O2
CARGO ?= cargo
STRIP ?= strip
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
CMAKEDIR ?= $(LIBDIR)/cmake
MANDIR ?= $(PREFIX)/share/man
DESTDIR ?=

# Cargo may have been told another folder, or another target than the host.
override CARGO_TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
TARGET_DIR := $(CARGO_TARGET_DIR)
RELEASE_DIR = $(TARGET_DIR)$(if $(CARGO_BUILD_TARGET),/$(CARGO_BUILD_TARGET))/release

# Where the libraries that `make all` built are: cargo's own folder is also
# written to by `cargo build`, without LTO.
LIB_DIR = $(TARGET_DIR)/lib
SONAME = libcolibri_sampler.so.0

Q = $(if $(filter 1,$(V)),,@)
QUIET = $(if $(filter 1,$(V)),,--quiet)

export CC CXX CARGO CARGO_TARGET_DIR V
# For the C programs of c_tests alone: build.rs compiles the oracles, and those
# must not change with an -Ofast.
unexport CFLAGS
C_TESTS_ENV = env CFLAGS='$(CFLAGS)'
C_TESTS = $(C_TESTS_ENV) c_tests

.DEFAULT_GOAL := all

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile
	@echo 'V=1 shows every command. CC, CFLAGS, CARGO_TARGET_DIR are respected, and by install'
	@echo 'and uninstall: PREFIX, LIBDIR, INCLUDEDIR, PKGCONFIGDIR, CMAKEDIR, MANDIR, DESTDIR.'

# One cargo call with these two crate types only: with an rlib among them LTO
# would silently be off. Programs look for the shared library by its SONAME.
all: ## both libraries, in target/lib (the headers are in include/)
	$(Q)$(CARGO) rustc $(QUIET) --release --lib --crate-type cdylib,staticlib
	$(Q)mkdir -p "$(LIB_DIR)"
	$(Q)cp "$(RELEASE_DIR)/libcolibri_sampler.a" "$(RELEASE_DIR)/libcolibri_sampler.so" "$(LIB_DIR)/"
	$(Q)ln -sf libcolibri_sampler.so "$(LIB_DIR)/$(SONAME)"

# By the environment, so that a path with a space stays one word.
install uninstall: export PREFIX := $(PREFIX)
install uninstall: export LIBDIR := $(LIBDIR)
install uninstall: export INCLUDEDIR := $(INCLUDEDIR)
install uninstall: export PKGCONFIGDIR := $(PKGCONFIGDIR)
install uninstall: export CMAKEDIR := $(CMAKEDIR)
install uninstall: export MANDIR := $(MANDIR)
install uninstall: export DESTDIR := $(DESTDIR)
install uninstall: export STRIP := $(STRIP)

install: all ## libraries, headers, pkg-config and CMake files, man page: PREFIX=/usr/local DESTDIR=
	$(Q)packaging/install.sh install "$(LIB_DIR)"

uninstall: ## away with what install put there, given the same directories
	$(Q)packaging/install.sh uninstall

headers: ## include/ anew from the Rust source
	$(Q)UPDATE_HEADERS=1 $(CARGO) test $(QUIET) --test headers

vendor: ## the original's files out of a git clone: COLIBRI=PATH
	$(if $(COLIBRI),,$(error say where the clone of Colibri is: make vendor COLIBRI=PATH))
	$(Q)vendor/fetch.sh "$(COLIBRI)"

# Under the tests' profile, whose dependencies `make check` shares.
replay: ## draws compared with the C code, as a table; ARGS='FILE --vocab V ...'
	$(Q)scripts/need.sh libclang
	$(Q)$(CARGO) run $(QUIET) --profile test --example replay -- $(ARGS)

# Under the profile of the benches: the library as it is released.
CAMPAIGN = $(if $(CASE),--case $(CASE),$(if $(N),--draws $(N)) $(if $(FROM),--from $(FROM))) \
	$(if $(SEED),--seed $(SEED)) $(if $(TIER),--tier $(TIER)) $(if $(SUMMARY),--summary '$(SUMMARY)')

campaign: ## random draws compared with the C code: N=1000000 SEED=1 TIER= CASE= FROM= SUMMARY=FILE
	$(Q)scripts/need.sh libclang
	$(Q)$(if $(TIER),COLIBRI_SAMPLER_TIER=$(TIER)) $(CARGO) run $(QUIET) --profile bench --example campaign -- \
		$(CAMPAIGN) $(ARGS)

SECONDS ?= 240
fuzz: ## libFuzzer on the C functions and the sampler, beside the C reference: SECONDS=240 in all
	$(Q)scripts/need.sh libclang cargo-fuzz
	$(Q)scripts/fuzz.sh $(SECONDS) "$(TARGET_DIR)"

mutants: ## faults planted all over src/, each to be caught by a test: ARGS='--file src/draw.rs'; without, hours
	$(Q)scripts/need.sh libclang cargo-nextest cargo-mutants
	$(Q)scripts/mutants.sh "$(TARGET_DIR)/mutants" $(ARGS)

planted: ## the faults of scripts/planted.txt, in what cargo-mutants leaves alone: ONLY=PATTERN for some
	$(Q)scripts/need.sh libclang cargo-nextest
	$(Q)scripts/planted.sh "$(TARGET_DIR)/planted" $(if $(ONLY),'$(ONLY)')

# The C side as Colibri compiles its own.
bench: ## times beside the C code's; ARGS='--quick --csv FILE --markdown ...'
	$(Q)scripts/need.sh libclang
	$(Q)CFLAGS='-O3 -march=native' $(CARGO) bench $(QUIET) --bench paired -- $(ARGS)

clean: ## away with everything built
	$(Q)$(CARGO) clean $(QUIET)

# Every step of `make check`, in order; each is a target check-STEP of its own.
CHECKS = format lint docs build headers tests symbols exits surroundings cpus memory asan install consumer linking c \
	valgrind vendor upstream replay

check: ## everything that CI runs
	+@MAKE="$(MAKE)" scripts/check.sh "$(TARGET_DIR)/check" $(CHECKS)

check-format:
	$(Q)scripts/need.sh rustfmt
	$(Q)$(CARGO) fmt --check

# Without the oracles too: code that only they use must not hide in a warning.
check-lint:
	$(Q)scripts/need.sh clippy libclang
	$(Q)$(CARGO) clippy $(QUIET) --lib -- -D warnings
	$(Q)$(CARGO) clippy $(QUIET) --all-targets -- -D warnings

check-docs:
	$(Q)RUSTDOCFLAGS='-D warnings' $(CARGO) doc $(QUIET) --no-deps

check-build: all
	@cd "$(LIB_DIR)" && du -Lk libcolibri_sampler.so libcolibri_sampler.a | \
		awk '{ printf "%s%s %d KB", (NR > 1 ? ", " : ""), $$2, $$1 } END { print "" }'

check-headers:
	$(Q)scripts/need.sh libclang
	$(Q)$(CARGO) test $(QUIET) --test headers >&2
	$(Q)scripts/need.sh g++ -- c_tests/check_headers.sh include

check-tests:
	$(Q)scripts/need.sh libclang
	$(Q)scripts/tests.sh

check-symbols: all
	$(Q)$(C_TESTS)/check_symbols.sh "$(LIB_DIR)/libcolibri_sampler.so" include

check-exits: all
	$(Q)WITH=c_tests/child.c $(C_TESTS)/check_program.sh "$(LIB_DIR)" include c_tests/exits.c
	$(Q)$(C_TESTS)/check_program.sh "$(LIB_DIR)" include c_tests/own_rand.c tests/cases/fallback_683.txt
	$(Q)$(C_TESTS)/check_program.sh "$(LIB_DIR)" include c_tests/api.c

check-surroundings: all ## threads, forks, copies of the library, floating-point modes
	$(Q)$(C_TESTS)/check_surroundings.sh "$(LIB_DIR)" include

# The C side for the baseline, whatever CFLAGS say: the emulated CPUs have less than this one.
check-cpus: all ## CPUs without AVX2, or without AVX-512, emulated; and expf without FMA
	$(Q)CFLAGS=-O2 scripts/need.sh qemu-x86_64 -- c_tests/check_cpus.sh "$(LIB_DIR)" include

# Every call against the reference, in memory that leaves no room for a mistake. valgrind gets every 37th length.
CALLS = env WITH='c_tests/calls.c c_tests/child.c c_tests/reference.c' c_tests/check_program.sh "$(LIB_DIR)" include

check-memory: all
	$(Q)$(C_TESTS_ENV) $(CALLS) c_tests/bounds.c
	$(Q)$(C_TESTS_ENV) COLIBRI_SAMPLER_TIER=portable LINKS=static $(CALLS) c_tests/bounds.c 3
	$(Q)CFLAGS='-O1 -g' RUNNER='$(VALGRIND)' scripts/need.sh valgrind -- $(CALLS) c_tests/bounds.c 37
	$(Q)$(C_TESTS_ENV) $(CALLS) c_tests/faults.c
	$(Q)$(C_TESTS_ENV) $(CALLS) c_tests/soak.c
	$(Q)$(C_TESTS_ENV) $(CALLS) c_tests/small_stack.c
	$(Q)$(C_TESTS_ENV) $(CALLS) c_tests/signals.c

# In a folder of its own: other flags would have cargo build everything anew.
SANITIZED = $(TARGET_DIR)/sanitizers

check-asan:
	$(Q)c_tests/check_sanitizers.sh "$(SANITIZED)" include

# Not part of `make check`: some minutes. Those of the Rust tests that reach every kernel and every function, under
# AddressSanitizer. The target is named, or build scripts would get the flag too.
SANITIZED_TESTS = --lib --test cases --test boundary --test api --test greedy --test differential
check-sanitizers: check-asan ## AddressSanitizer and UndefinedBehaviorSanitizer: C programs, the library, Rust tests
	$(Q)scripts/need.sh libclang
	$(Q)RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address $(CARGO) test $(QUIET) --target-dir "$(SANITIZED)" \
		--target $(or $(CARGO_BUILD_TARGET),$(shell rustc -vV | sed -n 's/^host: //p')) $(SANITIZED_TESTS)

check-install: all
	$(Q)scripts/need.sh g++ cmake pkg-config mandoc -- $(C_TESTS_ENV) c_tests/check_install.sh

check-consumer: all
	$(Q)scripts/need.sh pkg-config -- $(C_TESTS_ENV) c_tests/check_consumer.sh

# Not part of `make check`: cargo-c takes some six minutes to build.
check-cinstall: ## that cargo-c installs the library too; builds cargo-c where it is missing
	$(Q)scripts/need.sh pkg-config -- $(C_TESTS_ENV) c_tests/check_cinstall.sh "$(TARGET_DIR)/tools"

# Not part of `make check`: some minutes. The second run has glibc take the expf
# that it has for CPUs without FMA; another C library does not listen.
EXHAUSTIVE = -- --ignored --nocapture --test-threads=1 exhaustive
check-exhaustive: ## every float that the fast path relies on, against the host's expf
	$(Q)scripts/need.sh libclang
	$(Q)$(CARGO) test $(QUIET) --lib --test boundary $(EXHAUSTIVE)
	$(Q)GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4 $(CARGO) test $(QUIET) --lib $(EXHAUSTIVE)

check-linking: all
	$(Q)scripts/need.sh g++ cmake pkg-config -- $(C_TESTS_ENV) c_tests/check_linking_doc.sh "$(TARGET_DIR)"

check-c: all ## the C regression, linked statically and dynamically
	$(Q)$(C_TESTS)/check_program.sh "$(LIB_DIR)" include c_tests/regression.c

# valgrind knows no AVX-512: the C side is built for the baseline, whatever
# CFLAGS say. A smaller vocabulary, since it is some 50 times slower.
VALGRIND = valgrind -q --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all --error-exitcode=99
VALGRIND_VOCAB = 3000

check-valgrind: all
	$(Q)CFLAGS='-O1 -g' RUNNER='$(VALGRIND)' scripts/need.sh valgrind -- \
		c_tests/check_program.sh "$(LIB_DIR)" include c_tests/regression.c $(VALGRIND_VOCAB)

check-vendor: all
	$(Q)$(C_TESTS)/check_vendor.sh "$(LIB_DIR)" include

check-upstream: all ## the original's own test against the library, if it is in vendor/
	$(Q)$(C_TESTS)/check_upstream.sh "$(LIB_DIR)" include vendor

check-replay:
	$(Q)scripts/need.sh libclang
	$(Q)$(CARGO) run $(QUIET) --profile test --example replay >&2
	$(Q)$(CARGO) run $(QUIET) --profile test --example replay | tail -n 5

# Not part of `make check`: Chromium is 124 MB.
check-html: ## the page of `make replay ARGS='... --html'`, in headless Chromium if it is there
	$(Q)scripts/need.sh libclang
	$(Q)scripts/check_html.sh $(CARGO) run $(QUIET) --profile test --example replay --

.PHONY: help all install uninstall headers vendor replay campaign fuzz mutants planted clean check check-exhaustive check-cinstall \
	check-html check-sanitizers $(CHECKS:%=check-%)
