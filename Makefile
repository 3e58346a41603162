# Muster's commands. `make` alone lists them.

PREFIX ?= /usr/local
# DHT: with OpenDHT, in directories of its own; the command is then under the GPL's terms.
TRAITS ?=
# Of `make fuzz`: how long each target runs.
SECONDS ?= 60

SWIFT_FLAGS = -c release --explicit-target-dependency-import-check error
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
ifneq ($(filter test,$(MAKECMDGOALS)),)
$(error "make test" tests the build without traits: use "make test-dht")
endif
endif
MUSTER = $(BUILD)/release/muster
# Simulations keep every core busy for minutes, so they run apart from the tests of real processes.
SWIFT_TEST = swift test $(SWIFT_FLAGS) --skip-build --disable-xctest --disable-testable-imports
# All parts run, also after one that failed.
TESTS = '$(SWIFT_TEST) --skip SimulationTests' '$(SWIFT_TEST) --filter SimulationTests' \
  Tests/LabTests/run Tests/InteropTests/run Tests/PageTests/run Tests/DeviceTests/run \
  'Tests/Fuzz/run 5'
# The installed command carries the Swift runtime, so that it runs where no Swift is.
STATIC = $(BUILD)-static/release/muster
SOURCES = Package.swift $(shell find Sources -type f)

.PHONY: help setup build build-tests demo test test-dht test-threads fuzz nightly lint bench docs \
  install uninstall clean
.DEFAULT_GOAL := help

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: ## Install the Debian packages that building needs and this machine lacks
	@.ci/setup $(PACKAGES)

build: setup ## Build the command in release configuration; TRAITS=DHT: with OpenDHT
	swift build $(SWIFT_FLAGS) --scratch-path $(BUILD)

demo: build ## Run a call of three nodes on this machine
	$(MUSTER) demo --video Tests/Vectors/media/bunny_320x180.ivf \
	  --audio Tests/Vectors/media/speech_16k.wav

build-tests:
	@.ci/setup test
	swift build $(SWIFT_FLAGS) --build-tests

test: build-tests ## Build and run every test, a brief fuzz run included
	@failed=; for part in $(TESTS); do \
	  echo "$$part"; $$part || failed="$$failed, $$part"; \
	done; \
	[ -z "$$failed" ] || { echo "failed: $${failed#, }" >&2; exit 1; }

test-dht: ## Build the command with OpenDHT, and run the checks that need it
	@.ci/setup test-dht
	$(MAKE) build TRAITS=DHT
	Tests/LabTests/run --muster .build-dht/release/muster --only dht --only midnight

# Only what owns threads: engines have none. A debug build of its own, since the sanitizer has to be
# compiled into every object. C libraries are not instrumented, but their locks are seen.
test-threads: ## Run the tests of everything that has threads under the thread sanitizer
	@.ci/setup test
	swift build --build-tests --sanitize thread --scratch-path .build-threads
	swift test --skip-build --disable-xctest --sanitize thread --scratch-path .build-threads \
	  --filter '^(Shell|View|MusterDevices|MusterPipeline|MusterStore|MusterNetwork|MusterCommand)Tests'

fuzz: setup ## Fuzz every parser and engine: SECONDS=60 each
	Tests/Fuzz/run $(SECONDS)

# What .ci/run leaves out because it takes hours: on two cores about 55 minutes for 10,000 seeds, 15
# for 5,000 of --reach, 20 for fuzzing (a minute for each target, and the build); the long lab checks
# and the sanitizer's build come on top. Each date has seeds of its own.
nightly: build ## Run the long checks: seeds of the day, long lab checks, fuzzing, thread sanitizer
	@.ci/setup test
	.ci/run nightly

lint: ## Check the formatting
	swift format lint --strict -r Sources Tests Package.swift

bench: build ## Measure cost and speed against the bare libraries; fails beyond a budget
	@mkdir -p .build-bench
	cc -O2 -fPIC -shared -o .build-bench/malloc_count.so Tests/Benchmarks/malloc_count.c
	LD_PRELOAD=$(CURDIR)/.build-bench/malloc_count.so $(MUSTER) bench

docs: build ## Write the library's reference to .build-docs
	.ci/docs $(BUILD)/release .build-docs

$(STATIC): $(SOURCES)
	@.ci/setup $(PACKAGES)
	swift build $(SWIFT_FLAGS) --static-swift-stdlib --scratch-path $(BUILD)-static --product muster

install: $(STATIC) ## Install the command under PREFIX=/usr/local
	install -D -m 755 $(STATIC) $(DESTDIR)$(PREFIX)/bin/muster
	install -D -m 644 LICENSE $(DESTDIR)$(PREFIX)/share/doc/muster/LICENSE

uninstall: ## Remove what install put there
	rm -f $(DESTDIR)$(PREFIX)/bin/muster $(DESTDIR)$(PREFIX)/share/doc/muster/LICENSE
	-rmdir $(DESTDIR)$(PREFIX)/share/doc/muster

clean: ## Remove everything that was built
	rm -rf .build .build-*
