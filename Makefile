# Muster's commands. `make` alone lists them.

PREFIX ?= /usr/local
# DHT: with OpenDHT, in directories of its own; the command is then under the GPL's terms.
TRAITS ?=
# Of `make fuzz`: how long each target runs.
SECONDS ?= 60

CHECKED = --explicit-target-dependency-import-check error
SWIFT_FLAGS = -c release $(CHECKED)
STATIC_FLAGS = --static-swift-stdlib
BUILD = .build
PACKAGES = build
ifeq ($(TRAITS),DHT)
SWIFT_FLAGS += --traits DHT
BUILD = .build-dht
PACKAGES = dht
else ifneq ($(TRAITS),)
$(error there is no trait "$(TRAITS)": use TRAITS=DHT, or none)
endif
ifneq ($(TRAITS),)
ifneq ($(filter check test test-all nightly,$(MAKECMDGOALS)),)
$(error the tests build what they need: leave TRAITS out; "make nightly" has those of the DHT)
endif
endif
MUSTER = $(BUILD)/release/muster
# The installed command carries the Swift runtime, so that it runs where no Swift is.
STATIC = $(BUILD)-static/release/muster
SOURCES = Package.swift $(shell find Sources -type f)

# The build of the tests: engines and simulator as in a release, all else unoptimised, which takes
# the compiler half the time.
GATE = MUSTER_ENGINES=optimized swift build --scratch-path .build-gate $(CHECKED)

.PHONY: help setup build lab lab-static build-tests demo check test test-all test-threads fuzz nightly \
  gate-times lint bench docs pictures install uninstall deb clean
.DEFAULT_GOAL := help

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: ## Install the Debian packages that building needs and this machine lacks
	@.ci/setup $(PACKAGES)

build: setup ## Build the command in release configuration; TRAITS=DHT: with OpenDHT
	swift build $(SWIFT_FLAGS) --scratch-path $(BUILD) --product muster

lab: build ## Build muster-lab beside it, which simulates and measures
	swift build $(SWIFT_FLAGS) --scratch-path $(BUILD) --product muster-lab
	swift build $(SWIFT_FLAGS) --scratch-path $(BUILD) --product muster-lawless

demo: build ## Run a call of three nodes on this machine
	$(MUSTER) demo --video Tests/Vectors/media/bunny_320x180.ivf \
	  --audio Tests/Vectors/media/speech_16k.wav

build-tests:
	@.ci/setup gate
	$(GATE) --build-tests

check: ## Build and test what a change needs: T=MusterLink, T="lab:five_nodes page"; see .ci/check
	@.ci/check $(T)

test: ## Run the tests that every change has to pass, in about ten minutes
	@.ci/setup gate
	@.ci/test gate

gate-times: ## Record the times of the last `make test` in Tests/gate-times.json
	@.ci/test --record

test-all: ## Run all tests: the whole lab, page, devices, guide, package, fuzzing, 1,000 fresh seeds
	@.ci/setup test
	@.ci/setup package
	@.ci/test all

# Only what owns threads: engines have none. A debug build of its own, since the sanitizer has to be
# compiled into every object. C libraries are not instrumented, but their locks are seen.
test-threads: ## Run the tests of everything that has threads under the thread sanitizer
	@.ci/setup test
	swift build --build-tests --sanitize thread --scratch-path .build-threads
	swift test --skip-build --disable-xctest --sanitize thread --scratch-path .build-threads \
	  --filter '^(Shell|View|MusterDevices|MusterPipeline|MusterStore|MusterNetwork|MusterCommand)Tests'

fuzz: setup ## Fuzz every parser and engine: SECONDS=60 each
	Tests/Fuzz/run $(SECONDS)

# On two cores about 55 minutes for 10,000 seeds, 15 for 5,000 of --reach, 35 for 1,000 of
# --adversary, 20 for fuzzing (a minute for each target, and the build); the long lab checks and the
# sanitizer's build come on top.
nightly: ## Run the long checks: seeds of the day, long lab checks, DHT, fuzzing, thread sanitizer
	@.ci/setup test-dht
	@.ci/test nightly

lint: ## Check the formatting
	swift format lint --strict -r Sources Tests Package.swift

bench: lab ## Measure cost and speed against the bare libraries; fails beyond a budget
	@mkdir -p .build-bench
	cc -O2 -fPIC -shared -o .build-bench/malloc_count.so Tests/Benchmarks/malloc_count.c
	LD_PRELOAD=$(CURDIR)/.build-bench/malloc_count.so $(MUSTER)-lab bench

docs: ## Write the library's reference to .build-docs
	@.ci/setup build
	$(GATE) --target Muster
	.ci/docs .build-gate/debug .build-docs

pictures: build deb ## Take the documents' pictures, and what terminals show, from the program
	@.ci/setup test
	python3 -B Tests/PageTests/pictures.py $(MUSTER) docs/pictures
	Tests/GuideTests/run --muster $(MUSTER) --take

$(STATIC): $(SOURCES)
	@.ci/setup $(PACKAGES)
	swift build $(SWIFT_FLAGS) $(STATIC_FLAGS) --scratch-path $(BUILD)-static --product muster

# The installed command, and what measures it: what `make test-all` tests.
lab-static:
	@.ci/setup $(PACKAGES)
	$(MAKE) lab BUILD=.build-static SWIFT_FLAGS="$(SWIFT_FLAGS) $(STATIC_FLAGS)"

# Building needs the user's Swift, and only copying may need root: where the nearest folder that is
# there cannot be written to.
TARGET = $(DESTDIR)$(PREFIX)
AS_ROOT = $(shell folder=$(TARGET)/bin; while [ ! -e "$$folder" ]; do folder=$$(dirname "$$folder"); \
  done; test -w "$$folder" || echo sudo)

INSTALL = $(AS_ROOT) env PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) .packaging/install

install: $(STATIC) ## Install the command and what belongs to it under PREFIX=/usr/local
	$(INSTALL) $(STATIC)

uninstall: ## Remove what install put there
	$(INSTALL) --remove

# DEBFULLNAME and DEBEMAIL name its maintainer. The package must please lintian.
deb: $(STATIC) ## Make a Debian package in .build-deb
	@.ci/setup package
	.packaging/deb $(STATIC) .build-deb
	lintian --allow-root --fail-on error,warning,info .build-deb/*.changes

clean: ## Remove everything that was built
	rm -rf .build .build-*
