# What contributors and CI run. `make` alone lists the targets.
#
# Only Go is needed. Programs in other languages and other servers are used where they are
# installed; a suite that misses one skips and says so at the end. With DUEPOST_REQUIRE=all,
# as in CI, a missing one is a failure.

GO        ?= go
FUZZTIME  ?= 10s
BENCHTIME ?= 1s
PACKAGES  ?= ./...

# Development tools have a module of their own, so that nobody who imports Duepost gets them.
TOOL = $(GO) tool -modfile=tools/go.mod

# $(call tests,flags) runs tests, shows failures at once and lists failures and skips, each
# with its reason, at the end. Where skips are forbidden none is overlooked: the event log of
# the run must not have one.
define tests
@mkdir -p build
$(TOOL) gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg \
	--jsonfile build/test.json -- $(1) $(PACKAGES)
@if [ "$$DUEPOST_REQUIRE" = all ] && grep '"Action":"skip"' build/test.json | grep '"Test":'; \
	then echo "tests were skipped, which DUEPOST_REQUIRE=all forbids"; exit 1; fi
endef

.DEFAULT_GOAL := help
.PHONY: help build test race fuzz oracle databases e2e gateway gateway-programs conformance parity relay cluster tidy lint cover demo bench examples overhead compare relaybench nightly

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the program: ./duepost
	$(GO) build -o duepost ./cmd/duepost

test: ## all tests of the module; what is skipped is listed at the end
	$(call tests,-timeout 3m)

race: ## all tests under the race detector, with the invariants checked
	$(call tests,-race -tags invariants -timeout 15m)

# Fuzz targets are read from the sources, so a new one is never forgotten.
fuzz: ## each fuzz target for FUZZTIME (10s)
	@set -e; \
	targets=$$(grep -rEo --include='*_test.go' '^func Fuzz[[:alnum:]_]+' . | sed 's/func //' | sort); \
	test -n "$$targets" || { echo "no fuzz targets found"; exit 1; }; \
	for target in $$targets; do \
		file=$${target%%:*}; name=$${target##*:}; \
		echo "$$(dirname $$file) $$name"; \
		$(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$(dirname $$file)"; \
	done

# The oracle has a module of its own, because Pebble brings dozens of others.
oracle: ## the store against an implementation over Pebble, with random operations
	cd oracle && $(GO) vet ./... && $(GO) test -count 1 -timeout 5m ./...

# Modules of their own, because of their drivers. Both start the servers that they need.
databases: ## once, outbox and sweep on SQLite, PostgreSQL, MariaDB and Redis, as installed
	cd dbtest && test -z "$$(gofmt -l .)" && $(GO) vet ./... && $(GO) mod tidy -diff && $(GO) test -count 1 -timeout 110s ./...
	cd once/redisonce && test -z "$$(gofmt -l .)" && $(GO) vet ./... && $(GO) mod tidy -diff && $(GO) test -count 1 -timeout 110s ./...

# A module of its own, because of its drivers and its browser.
examples: ## the example programs, with their page in a headless Chromium
	cd examples && test -z "$$(gofmt -l .)" && $(GO) vet ./... && $(GO) mod tidy -diff && $(GO) test -count 1 -timeout 8m ./...

e2e: PACKAGES = ./e2e/...
e2e: export DUEPOST_E2E_CHAIN = 100000
e2e: ## the black-box suites: programs in five languages against the real binary
	$(call tests,-count 1 -timeout 15m)

gateway: PACKAGES = ./internal/gateway ./e2e/gateway
gateway: ## the gateway, also in front of RabbitMQ 3.10, where it is installed, and 4.3
	$(GO) vet -tags gateway ./e2e ./internal/gateway
	$(call tests,-tags gateway -count 1 -timeout 7m)

# They measure milliseconds, of RabbitMQ too: for a machine that does nothing else.
gateway-programs: ## programs in five languages, and the Go client's tests, through the gateway
	$(GO) test -tags gateway -count 1 -timeout 5m -run TestThroughTheGateway ./e2e
	$(GO) run ./e2e/conformance -rabbitmq all

conformance: ## the integration tests of the Go client amqp091-go against duepost serve
	$(GO) run ./e2e/conformance

parity: ## each rule on Duepost and on RabbitMQ 3.10, where it is installed, and 4.3: one table
	$(GO) run ./parity

relay: PACKAGES = ./internal/relay/...
relay: ## the relay against RabbitMQ 3.10, where it is installed, and 4.3
	$(GO) vet -tags relay $(PACKAGES)
	$(call tests,-tags relay -count 1 -p 1 -parallel 4 -timeout 14m -skip '^TestCluster$$')

cluster: export DUEPOST_RELAY_CLUSTER = 100000
cluster: ## the relay on three nodes of RabbitMQ 4.3 that fail in turn, with 100,000 messages
	$(GO) test -tags relay -count 1 -timeout 15m -v -run '^TestCluster$$' ./internal/relay

tidy: ## the house rules; prints the longest files and functions
	$(GO) test -count 1 ./internal/tidy
	@$(GO) test -count 1 -v -run TestLengths ./internal/tidy | sed -n 's/.*_test.go:[0-9]*: //p'

lint: ## gofmt, go vet, staticcheck, go mod tidy
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; }
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	$(GO) mod tidy -diff

cover: ## coverage of all packages by all tests: build/cover.html
	@mkdir -p build
	$(GO) test -coverprofile build/cover.out -coverpkg ./... $(PACKAGES)
	@$(GO) tool cover -html build/cover.out -o build/cover.html
	@$(GO) tool cover -func build/cover.out | tail -n 1

demo: ## an order story with delayed messages and a crash in the middle, 15 seconds
	$(GO) run ./cmd/duepost demo

bench: ## the benchmarks, with allocations
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(PACKAGES)

overhead: ## CPU and allocations of the SDK and of the bare AMQP client, by turns
	$(GO) run ./bench/sdk

compare: ## load Duepost, and RabbitMQ where it is installed, by turns and print the ratios
	$(GO) run ./bench/compare

relaybench: ## what the relay costs RabbitMQ, beside a ladder of TTL queues and no delay, 20 minutes
	$(GO) run ./bench/relay

nightly: ## what takes long: race, fuzz for minutes each, the suites ten times
	$(MAKE) race
	$(MAKE) fuzz FUZZTIME=5m
	$(GO) test -count 10 -timeout 2h $(PACKAGES)
	$(MAKE) cluster
