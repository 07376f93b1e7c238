# SPDX-License-Identifier: Apache-2.0
# Thin front of Meson: every target first has its tools installed, then calls
# the tool or script that does the work. `make help` lists the targets.
#
#   CC=clang BUILD_DIR=build-clang make test    another compiler, beside the first build
#   make install PREFIX=/usr DESTDIR=/tmp/root  for packages

BUILD_DIR ?= build
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
export BUILD_DIR

# Where the loader and pkg-config look on Debian, with or without the tool that Meson asks there.
LIBDIR ?= $(if $(wildcard /etc/debian_version),lib)
places = --prefix=$(PREFIX) --sysconfdir=$(SYSCONFDIR) $(if $(LIBDIR),--libdir=$(LIBDIR))
# Under sudo the tree stays its owner's.
configure = scripts/as_owner meson setup $(BUILD_DIR) $(if $(wildcard $(BUILD_DIR)/build.ninja),--reconfigure) $(places)
compile = scripts/as_owner meson compile -C $(BUILD_DIR)

.PHONY: build demo demo-python recurrences test bench lint check-all sanitize fuzz soak reproduce install uninstall clean help

build: $(BUILD_DIR)/build.ninja ## library and programs, in build/ (the default)
	$(compile)

demo: build ## a first look: a small network trained in earnest, and what was saved
	scripts/demo

demo-python: $(BUILD_DIR)/.with-python ## a PyTorch training as a recurring job on emulated GPUs, and what was saved
	$(compile)
	scripts/demo_python

recurrences: build ## forty recurrences of a job over a file, forty over two services, and what was saved
	scripts/bootstrap recurrences
	scripts/recurrences

test: $(BUILD_DIR)/.with-tests ## every test
	scripts/test $(BUILD_DIR)

bench: $(BUILD_DIR)/.with-tests ## speed of the parts that must be fast
	scripts/bootstrap bench
	$(compile)
	python3 bench/against_baseline.py $(BUILD_DIR) "$${FLYBALL_TEST_DATA:-../shared/data}/zeus_nsdi23"
	$(BUILD_DIR)/bench/bench $(BUILD_DIR)/flyball "$${FLYBALL_TEST_DATA:-../shared/data}/zeus_nsdi23"
	$(BUILD_DIR)/bench/bench_limits "$${FLYBALL_TEST_DATA:-../shared/data}/zeus_nsdi23"
	$(BUILD_DIR)/bench/bench_search "$${FLYBALL_TEST_DATA:-../shared/data}/zeus_nsdi23"
	python3 bench/over_stores.py $(BUILD_DIR)/bench $(BUILD_DIR)/bench/bench_job
	python3 bench/over_stores.py $(BUILD_DIR)/bench $(BUILD_DIR)/bench/bench_clients $(BUILD_DIR)/flyball
	$(BUILD_DIR)/bench/bench_meter $(BUILD_DIR)/emulator/libnvidia-ml.so.1
	FLYBALL_TEST_EMULATOR=$(BUILD_DIR)/emulator FLYBALL_TEST_WINDOWS=1000 FLYBALL_TEST_CELLS='a100, truth' $(BUILD_DIR)/tests/test_meter_windows | sed -n 's/^# //p'
	$(BUILD_DIR)/bench/bench_leases $(BUILD_DIR)/emulator/libnvidia-ml.so.1 $(BUILD_DIR)/flyball-guard $(BUILD_DIR)/flyballd
	$(BUILD_DIR)/bench/bench_carbon
	$(BUILD_DIR)/bench/bench_tuner
	$(BUILD_DIR)/bench/bench_tuner_search $(BUILD_DIR)/emulator/libnvidia-ml.so.1
	python3 bench/over_stores.py $(BUILD_DIR)/bench $(BUILD_DIR)/bench/bench_store
	$(BUILD_DIR)/bench/bench_tuner_cpu $(BUILD_DIR)/emulator/libnvidia-ml.so.1
	$(BUILD_DIR)/bench/bench_monitor $(BUILD_DIR)/flyball $(BUILD_DIR)/emulator/libnvidia-ml.so.1
	$(BUILD_DIR)/bench/bench_watch
	FLYBALL_TEST_EMULATOR=$(abspath $(BUILD_DIR)/emulator) python3 bench/daemon_http.py $(BUILD_DIR)/flyball
	$(if $(wildcard $(BUILD_DIR)/python/flyball),python3 bench/bench_python.py $(BUILD_DIR))

check-all: ## everything, for hours: tests, lint, sanitizers, fuzzing, soaks, new machines; PARTS="lint demo" for some
	scripts/bootstrap build test
	scripts/check_all $(PARTS)

lint: $(BUILD_DIR)/.with-tests ## formatting, static analysis, scripts, man pages; LINT_FLAGS=--changed for what changed
	scripts/bootstrap lint
	$(compile)
	scripts/lint $(LINT_FLAGS)

sanitize: ## the tests under sanitizers, and the same bytes on other builds
	scripts/bootstrap build test sanitize
	scripts/sanitize

fuzz: ## every fuzz target for a while; FUZZ_RUNS and FUZZ_SECONDS bound it
	scripts/bootstrap build fuzz
	scripts/fuzz

soak: $(BUILD_DIR)/.with-tests ## long runs that look for leaks and drift; SOAK_FLAGS=--short for a taste
	scripts/bootstrap soak
	$(compile)
	scripts/soak $(SOAK_FLAGS)

reproduce: build ## the published claims against the published traces, in docs/explanation/reproduction.md and docs/explanation/carbon.md
	scripts/bootstrap soak
	scripts/reproduce
	scripts/reproduce_carbon

install: $(BUILD_DIR)/build.ninja ## programs, library, headers and man pages under PREFIX
	scripts/as_owner meson configure $(BUILD_DIR) $(places)
	$(compile)
	DESTDIR=$(abspath $(DESTDIR)) scripts/install $(BUILD_DIR) $(PREFIX)

uninstall: ## removes what 'make install' put under PREFIX
	DESTDIR=$(abspath $(DESTDIR)) scripts/install --remove $(BUILD_DIR) $(PREFIX)

clean: ## removes all that was built
	rm -rf $(BUILD_DIR) build-asan build-tsan build-pyasan build-plain build-native build-fuzz build-checks flyball-demo flyball-demo-python flyball-recurrences

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

# Tests need cmocka, so a build without them does not ask for it.
$(BUILD_DIR)/build.ninja:
	scripts/bootstrap build
	$(configure) -Dtests=false

# A build from before the interpreter's headers were there has no package.
$(BUILD_DIR)/.with-python: | $(BUILD_DIR)/build.ninja
	scripts/bootstrap build python
	$(configure)
	@scripts/as_owner touch $@

$(BUILD_DIR)/.with-tests:
	scripts/bootstrap build test
	$(configure) -Dtests=true
	@scripts/as_owner touch $@
