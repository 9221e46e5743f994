# Everything a developer does, by name; `make` alone lists it. Beside Go and apt's packages nothing is fetched.

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 30s
IMAGE    ?= redlock-proxy
ARGS     ?=
CONNECTS ?= 500000
GRANTS   ?= 100000
OPS      ?= 200000
ROUNDS   ?= 500

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build test deps lint unit integration compose overlap histories guard fmt bench bench-lockkeys bench-faults bench-idle bench-relay bench-relay-soak fuzz demo image

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the static binary, bin/redlock-proxy
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/redlock-proxy .

test: deps lint unit integration compose ## everything that must pass; installs what it needs where it can

deps: ## install what the tests need: redis-server and the clients of other languages
	@scripts/install-deps

lint: ## gofmt, go vet and staticcheck, also of the integration tests
	@files=$$(gofmt -l .); test -z "$$files" || { echo "not formatted, see make fmt:"; echo "$$files"; exit 1; }
	go vet ./...
	go vet -tags integration ./...
	go tool staticcheck ./...
	go tool staticcheck -tags integration ./...

unit: ## the Go tests under the race detector
	@scripts/race ./...

integration: ## the tests against real redis-servers and real clients (-v: what is skipped says so)
	go test -v -count=1 -timeout 30m -tags integration $$(go list -tags integration ./integration/... | grep -v /compose$$)

# By itself, because building the image takes all the processors from whatever runs beside it.
compose: ## docker-compose.yml for real, where a Docker engine answers
	go test -v -count=1 -timeout 20m -tags integration ./integration/compose

overlap: ## GRANTS (100000) grants of one lock by two proxies while masters fail: never two holders at once
	REDLOCK_GRANTS=$(GRANTS) go test -v -count=1 -timeout 2h -tags integration -run '^TestOverlap' ./integration

histories: ## OPS (200000) ordinary commands on lock keys through two proxies while masters fail, each reply as of one Redis
	REDLOCK_OPS=$(OPS) REDLOCK_KEY_GRANTS=$$(($(OPS) / 100)) go test -v -count=1 -timeout 2h -tags integration -run '^(TestHistories|TestOverlapOfLockKeys)$$' ./integration

guard: ## ROUNDS (500) masters killed without their data under locks that stand, then stepped clocks, stopped masters and the wait by lease
	REDLOCK_ROUNDS=$(ROUNDS) go test -v -count=1 -timeout 2h -tags integration -run '^TestGuard' ./integration

fmt: ## gofmt every file
	gofmt -w .

bench: ## this proxy, redsync and a single Redis side by side; ARGS='…' for the benchmark's flags
	go run ./integration/bench -client both $(ARGS)

bench-lockkeys: ## SET NX PX and EVALSHA on lock keys beside LOCK and UNLOCK
	go run ./integration/bench -client both -contenders proxy,lockkeys -scenarios c1,c16,c64 $(ARGS)

bench-faults: ## LOCK while 2 of 5 masters are killed, stopped or unreachable, beside LOCK while all are well
	go run ./integration/faultbench $(ARGS)

bench-idle: ## the proxy's memory for each of 10,000 idle clients
	go run ./integration/idlebench $(ARGS)

bench-relay: ## the way to an upstream Redis beside HAProxy and nutcracker, which it installs; ARGS='…' as above
	@scripts/install-deps bench
	go run ./integration/relaybench $(ARGS)

bench-relay-soak: ## memory per idle client beside HAProxy's, then CONNECTS (500000) clients that come and go
	@scripts/install-deps bench
	go run ./integration/relaybench -idle -connects $(CONNECTS) $(ARGS)

fuzz: ## every fuzz target for FUZZTIME (30s) each
	@FUZZTIME=$(FUZZTIME) scripts/fuzz

demo: ## try it now, with embedded masters; ARGS='…' for further flags
	go run . demo $(ARGS)

image: ## the container image redlock-proxy
	docker build --build-arg VERSION=$(VERSION) -t $(IMAGE):$(VERSION) -t $(IMAGE):latest .
