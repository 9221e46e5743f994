# Everything a developer does, by name; `make` alone lists it. Beside Go, its modules and apt's packages nothing is fetched.

# One way to compile for all, but under the race detector, which needs cgo: what a build, the linters and the tests have compiled, none compiles again.
export CGO_ENABLED ?= 0

VERSION  := $(shell sed -n 's/^const version = "\(.*\)"$$/\1/p' main.go)
COMMIT   ?= $(shell git describe --always --dirty --abbrev=12 --match=- 2>/dev/null)
FUZZTIME ?= 30s
IMAGE    ?= redlock-proxy
ARGS     ?=
CONNECTS ?= 500000
GRANTS   ?= 100000
FENCES   ?= 100000
OPS      ?= 200000
COMMANDS ?= 50000
ROUNDS   ?= 500
RUNS     ?= 1000
STALLS   ?= 50
RELOADS  ?= 1000
MASTERS_ROUNDS ?= 20
MASTERS_LOCKS ?= 100000
MOVES ?= 100
MIX ?= 1000
UPGRADES ?= 50
AT_ONCE  ?= 8
BUSY     ?= 6
HOSTILE  ?= 1h
EACH     ?= 15s
ROOMS    ?= locks guard lockkeys masters relay operate
# Go tests of which each test has a line, and those that show what they log as well.
TESTS    := scripts/gotest testname -vet=off -count=1 -tags integration
LOGGED   := scripts/gotest standard-verbose -vet=off -count=1 -tags integration
CHAOS_GRANTS ?= 1000000
CHAOS_FAULTS ?= 1000
PARTS    ?= deps lint staticcheck unit compose integration kubernetes release-snapshot fuzz model collections histories histories-stalled histories-busy \
            hostile-kinds overlap converge guard fences masters moves reloads upgrades chaos hostile versions

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build quick test test-all deps lint staticcheck unit integration versions compose overlap model histories collections histories-busy histories-stalled converge guard masters moves upgrades reloads chaos fences kubernetes fmt bench bench-locks bench-lockkeys bench-faults bench-handover bench-idle bench-relay bench-relay-soak bench-scripts fuzz hostile hostile-kinds demo image notice release-snapshot version

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the static binary, bin/redlock-proxy
	go build -trimpath -ldflags '-s -w -X main.commit=$(COMMIT)' -o bin/redlock-proxy .

quick: ## while working: gofmt, and the short unit tests, without the race detector, of what was changed since they passed last (Go remembers the rest)
	@files=$$(gofmt -l .); test -z "$$files" || { echo "not formatted, see make fmt:"; echo "$$files"; exit 1; }
	@SHORT=-short scripts/gotest pkgname ./...

test: ## what must pass before a change goes in (8 to 11 minutes); installs what it needs where it can, and names what it leaves to make test-all
	@SHORT=-short MAKE='$(MAKE)' LEFT='$(filter-out deps unit lint compose integration,$(PARTS))' scripts/test deps unit lint+compose integration

test-all: ## everything, before a release (a day and a night); PARTS='…' only these, each of which is a target of its own
	@MAKE='$(MAKE)' scripts/test $(PARTS)

deps: ## install what the tests need: redis-server and the clients of other languages; fetch servers of other releases
	@scripts/install-deps
	@scripts/versions >/dev/null

# With the tag the integration tests are looked at, and everything else as without it.
lint: ## gofmt and go vet, also of the integration tests
	@files=$$(gofmt -l .); test -z "$$files" || { echo "not formatted, see make fmt:"; echo "$$files"; exit 1; }
	go vet -tags integration,history ./...

staticcheck: ## staticcheck, also of the integration tests (3 minutes of processor time the first time: it reads all that is imported), the workflows, and whether NOTICE is stale
	go tool staticcheck -tags integration,history ./...
	cd scripts/tools && go vet ./... && go run ./notice -check && go tool actionlint $(addprefix ../../,$(wildcard .github/workflows/*.yml))

unit: ## the Go tests, under the race detector where goroutines are (SHORT=-short: as in make test)
	@scripts/unit ./...

model: ## the protocol of the locks explored, and that by which they move to the masters: all orders of messages, losses, ends of leases and restarts in small bounds (an hour)
	REDLOCK_MODEL=1 $(LOGGED) -timeout 2h ./internal/model ./quorum/location ./quorum/guard/reconfig

integration: ## the tests against real redis-servers and real clients (SHORT=-short: as in make test)
	@scripts/integration

versions: ## the integration tests of ROOMS (locks guard lockkeys masters relay operate) with each other Redis and Valkey in all roles, and with all of them mixed (hours)
	@scripts/versions >/dev/null; code=0; all=$$(scripts/versions -offline); \
	REDLOCK_TEST_PAGE=1 $(TESTS) -run '^(TestMatrix|TestConnecting)$$' ./integration/versions ./integration/clients || code=1; \
	for servers in $$all "installed,$$(echo $$all | tr ' ' ,)"; do \
		echo "==> REDLOCK_TEST_SERVERS=$$servers"; \
		REDLOCK_TEST_SERVERS=$$servers $(TESTS) -timeout 2h -p 1 $(ROOMS:%=./integration/%) || code=1; \
	done; exit $$code

# Not beside other tests: building the image takes all the processors from them, and they from the deployments. make lint takes what it leaves.
compose: ## docker-compose.yml for real, where a Docker engine answers (SHORT=-short: README's commands alone, and the program compiled outside of the container)
	@$(TESTS) -timeout 1h ./integration/compose

kubernetes: ## the Helm chart: linted, held to Kubernetes' own types, and what it starts, started (builds helm: 3 minutes of processor time the first time)
	cd deploy/helm/verify && go vet ./... && go test -count=1 ./...
	go vet -tags integration,helm ./integration/deploy
	$(TESTS),helm -run '^TestKubernetes' ./integration/deploy

overlap: ## GRANTS (100000) grants of one lock by two proxies while masters fail: never two holders at once
	REDLOCK_GRANTS=$(GRANTS) REDLOCK_KEY_GRANTS=$$(($(GRANTS) / 100)) $(LOGGED) -timeout 2h -p 1 -run '^TestOverlap' ./integration/holdings ./integration/locks ./integration/lockkeys

histories: ## OPS (200000) ordinary commands on lock keys through two proxies while masters fail, each reply as of one Redis
	REDLOCK_OPS=$(OPS) REDLOCK_KEY_GRANTS=$$(($(OPS) / 100)) $(LOGGED) -timeout 2h -run '^(TestHistories|TestOverlapOfLockKeys)$$' ./integration/lockkeys

collections: ## COMMANDS (50000) on hashes, lists and sets in lock keys through two proxies beside one Redis, as many while masters are killed, and OPS/10 (20000) with faults, each reply as of one Redis
	REDLOCK_COLLECTIONS=$(COMMANDS) REDLOCK_COLLECTION_OPS=$$(($(OPS) / 10)) $(LOGGED) -timeout 2h -run '^(TestCollectionsAsOneRedis|TestCollectionsWhileMastersAreKilled|TestHistoriesOfCollections|TestTagsAsOneRedis|TestHistoriesOfTags|TestHistoriesOfTagsUndisturbed)$$' ./integration/lockkeys

histories-busy: ## RUNS (1000) times 2,000 such commands of each mix, AT_ONCE (8) at a time, while BUSY (6) loops take the processors, masters all well: no error either
	REDLOCK_RUNS=$(RUNS) REDLOCK_AT_ONCE=$(AT_ONCE) REDLOCK_BUSY=$(BUSY) $(LOGGED) -timeout 12h -run '^TestHistoriesUndisturbed$$' ./integration/lockkeys

histories-stalled: ## STALLS (50) times 2,000 such commands of each mix while the proxies are stopped and go on at random, masters all well
	REDLOCK_STALLS=$(STALLS) $(LOGGED) -timeout 6h -run '^TestHistoriesOfStalledProxies$$' ./integration/lockkeys

converge: ## ROUNDS (500) of clients of two proxies that replace a few keys, after each of which all masters hold the same
	REDLOCK_ROUNDS_CONVERGE=$(ROUNDS) $(LOGGED) -timeout 6h -run '^TestConverge' ./integration/schedules

guard: ## ROUNDS (500) masters killed without their data under locks that stand, then stepped clocks, stopped masters and the wait by lease
	REDLOCK_ROUNDS=$(ROUNDS) $(LOGGED) -timeout 2h -run '^TestGuard' ./integration/guard

masters: ## MASTERS_ROUNDS (20) times from three masters to five and back, one at a time, under load and faults, and as often by proxies that are killed: no lock is granted twice; as often joins under load, and one with MASTERS_LOCKS (100000) locks
	REDLOCK_MASTERS_ROUNDS=$(MASTERS_ROUNDS) REDLOCK_MASTERS_LOCKS=$(MASTERS_LOCKS) $(LOGGED) -timeout 3h ./integration/masters

reloads: ## RELOADS (1000) reloads of the configuration under load: no connection, no reply and no lock is lost
	REDLOCK_RELOADS=$(RELOADS) $(LOGGED) -timeout 2h -run '^TestReloadsUnderLoad$$' ./integration/operate

fences: ## FENCES (100000) locks with fences by two proxies while one master after the other restarts without its data: each higher than the last
	REDLOCK_FENCES=$(FENCES) $(LOGGED) -timeout 2h -run '^TestGuardFences$$' ./integration/guard

moves: ## MOVES (100) moves of the locks to the masters and as many back under load, 30 of 100 with faults, 100 proxies stopped around a lock that they relay, and MIX (1000) rounds of moves, changes of masters and faults at random
	REDLOCK_MOVES=$(MOVES) REDLOCK_MOVE_STOPS=100 REDLOCK_MIX=$(MIX) $(LOGGED) -timeout 6h ./integration/moving

upgrades: ## UPGRADES (50) rolling upgrades of two proxies from each of the last two protocols, built from the history, and back; masters upgraded in place and replaced by another release: under load
	REDLOCK_UPGRADES=$(UPGRADES) $(LOGGED),history -timeout 3h ./integration/upgrade

chaos: ## CHAOS_GRANTS (1000000) locks while CHAOS_FAULTS (1000) things happen to masters, proxies, links, and clocks: none is held twice, lost, or back
	REDLOCK_CHAOS_GRANTS=$(CHAOS_GRANTS) REDLOCK_CHAOS_FAULTS=$(CHAOS_FAULTS) $(LOGGED) -timeout 6h -run '^TestChaos$$' ./integration/chaos

hostile: ## HOSTILE (1h) of hostile clients of all kinds under the race detector, beside honest ones: no crash, no wrong grant, memory bounded
	REDLOCK_HOSTILE=$(HOSTILE) $(LOGGED) -timeout 26h ./integration/hostile

hostile-kinds: ## how long honest clients wait beside each kind of hostile client by itself, EACH (15s), and beside harmless ones
	REDLOCK_HOSTILE_EACH=$(EACH) $(LOGGED) -timeout 2h -run '^TestEachKind$$' ./integration/hostile

version: ## the version
	@echo $(VERSION)

release-snapshot: ## all that is released, in dist: programs, packages, chart, SBOMs and checksums (half a minute of processor time, 9 minutes the first time)
	scripts/release snapshot

notice: ## NOTICE, from the licences of what is linked in
	go run -C scripts/tools ./notice

fmt: ## gofmt every file
	gofmt -w .

bench: ## all goals in one table, and the plot docs/locks.svg (twelve minutes; installs HAProxy and nutcracker)
	@scripts/install-deps bench
	go run ./integration/bench all -plot docs/locks.svg $(ARGS)

bench-locks: ## this proxy, redsync and a single Redis side by side; ARGS='…' for the benchmark's flags
	go run ./integration/bench locks -client both $(ARGS)

bench-lockkeys: ## SET NX PX and EVALSHA on lock keys, and the scripts of a re-entrant lock, beside LOCK and UNLOCK
	go run ./integration/bench locks -client both -contenders proxy,lockkeys,reentrant,telling -scenarios c1,c16,c64 $(ARGS)

bench-faults: ## LOCK while 2 of 5 masters are killed, stopped or unreachable, beside LOCK while all are well
	go run ./integration/bench faults $(ARGS)

bench-handover: ## one lock that passes between 64 clients of two proxies, beside redsync; ARGS='…' as above
	go run ./integration/bench handover $(ARGS)

bench-idle: ## the proxy's memory for each of 10,000 idle clients
	go run ./integration/bench idle $(ARGS)

bench-relay: ## the way to an upstream Redis beside HAProxy and nutcracker, which it installs; ARGS='…' as above
	@scripts/install-deps bench
	go run ./integration/bench relay $(ARGS)

bench-relay-soak: ## memory per idle client beside HAProxy's, then CONNECTS (500000) clients that come and go
	@scripts/install-deps bench
	go run ./integration/bench relay -idle -connects $(CONNECTS) $(ARGS)

bench-scripts: ## LOCK beside 50 clients with endless scripts, and without them: how many times as long; ARGS='…' as above
	go run ./integration/bench scripts $(ARGS)

fuzz: ## every fuzz target for FUZZTIME (30s) each
	@FUZZTIME=$(FUZZTIME) scripts/fuzz

demo: ## try it now, with embedded masters; ARGS='…' for further flags
	go run . demo $(ARGS)

image: ## the container image redlock-proxy
	docker build --build-arg COMMIT=$(COMMIT) -t $(IMAGE):$(VERSION) -t $(IMAGE):latest .
