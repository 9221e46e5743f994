# Targets for developers; `make` without a target lists them. They fetch only Go, its modules and
# packages of apt.

# Builds, linters and tests use the same setting, so that they share compiled packages. Only the
# race detector needs cgo.
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
STEPS    ?= 1000000
PIPELINES ?= 100000
ROUNDS   ?= 500
CONVERGE ?= 500
RUNS     ?= 1000
STALLS   ?= 50
RELOADS  ?= 1000
KEPT     ?= 100
STATES   ?= 12000000
CUTS     ?= 1000
KEPT_TIME ?= 1h
KEPT_LOCKS ?= 100000
MASTERS_ROUNDS ?= 20
MASTERS_LOCKS ?= 100000
MOVES ?= 100
MIX ?= 1000
UPGRADES ?= 50
CLUSTER_GRANTS ?= 100000
AT_ONCE  ?= 8
BUSY     ?= 6
HOSTILE  ?= 1h
EACH     ?= 15s
FOLDERS    ?= locks guard lockkeys masters relay operate
# TESTS runs Go tests with a line for each test. LOGGED also prints their logs.
TESTS    := scripts/gotest testname -vet=off -count=1 -tags integration
LOGGED   := scripts/gotest standard-verbose -vet=off -count=1 -tags integration
CHAOS_GRANTS ?= 1000000
CHAOS_FAULTS ?= 1000
HOLDER_GRANTS ?= 100000
HOLDER_FAULTS ?= 1000
VERSIONS ?= each mixed
VERSIONS_SHORT ?=
# SAMPLED has the sizes of the parts of make test-all: about a tenth of their full sizes. A part that
# is made alone has its full size.
SAMPLED  ?= GRANTS=20000 OPS=50000 COMMANDS=10000 STEPS=100000 PIPELINES=10000 ROUNDS=50 CONVERGE=5 STATES=100000 RUNS=48 STALLS=5 \
            RELOADS=100 KEPT=10 CUTS=100 KEPT_TIME=6m KEPT_LOCKS=10000 FENCES=20000 MASTERS_ROUNDS=2 MASTERS_LOCKS=10000 MOVES=10 MIX=50 UPGRADES=5 \
            CHAOS_GRANTS=100000 CHAOS_FAULTS=100 HOLDER_GRANTS=10000 HOLDER_FAULTS=100 CLUSTER_GRANTS=10000 HOSTILE=6m EACH=5s FUZZTIME=3s VERSIONS=mixed VERSIONS_SHORT=-short
PARTS    ?= deps lint staticcheck unit compose integration kubernetes release-snapshot fuzz model differential collections histories histories-stalled histories-busy \
            hostile-kinds overlap converge guard fences kept masters moves reloads upgrades chaos chaos-holders cluster hostile versions

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build quick test test-all deps lint staticcheck unit integration versions compose overlap model differential histories collections histories-busy histories-stalled converge guard kept masters moves upgrades reloads chaos chaos-holders cluster fences kubernetes fmt bench bench-locks bench-lockkeys bench-faults bench-handover bench-idle bench-relay bench-relay-soak bench-scripts fuzz hostile hostile-kinds demo image notice release-snapshot version

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the static binary, bin/redlock-proxy
	go build -trimpath -ldflags '-s -w -X main.commit=$(COMMIT)' -o bin/redlock-proxy .

quick: ## check while working: gofmt, and the short unit tests of changed packages, without the race detector
	@files=$$(gofmt -l .); test -z "$$files" || { echo "not formatted, see make fmt:"; echo "$$files"; exit 1; }
	@SHORT=-short scripts/gotest pkgname ./...

test: ## run the tests that must pass before a change is merged (8 to 18 minutes on two processors); installs missing programs if it can, and lists the tests left to make test-all
	@SHORT=-short MAKE='$(MAKE)' LEFT='$(filter-out deps unit lint compose integration,$(PARTS))' scripts/test deps unit lint+compose integration

test-all: ## run all tests, before a release (hours); PARTS='…' for some of them, each a target of its own; SAMPLED= for their full sizes (a day and more)
	@$(SAMPLED) MAKE='$(MAKE)' scripts/test $(PARTS)

deps: ## install the programs that the tests need: redis-server and clients of other languages; fetch other versions of the servers
	@scripts/install-deps
	@scripts/versions >/dev/null

# The tag adds the integration tests to the other files.
lint: ## run gofmt and go vet, also on the integration tests
	@files=$$(gofmt -l .); test -z "$$files" || { echo "not formatted, see make fmt:"; echo "$$files"; exit 1; }
	go vet -tags integration,history ./...

# go tool exits with 0 if a signal ends its program, so make runs staticcheck and actionlint directly.
staticcheck: ## run staticcheck, also on the integration tests, and check the workflows and NOTICE (3 minutes of processor time the first time)
	"$$(go tool -n staticcheck)" -tags integration,history ./...
	cd scripts/tools && go vet ./... && go run ./notice -check && "$$(go tool -n actionlint)" $(addprefix ../../,$(wildcard .github/workflows/*.yml))

unit: ## run the Go tests, packages with goroutines under the race detector (SHORT=-short: as in make test)
	@scripts/unit ./...

model: ## explore the lock protocol, and the protocol that moves locks to the masters: all orders of messages, losses, ends of leases and restarts within small bounds, and at most STATES (12000000) states of each scenario (an hour)
	REDLOCK_MODEL=$(STATES) $(LOGGED) -timeout 2h ./internal/model ./quorum/location ./quorum/guard/reconfig

integration: ## run the tests against real redis-servers and real clients, except those of masters, moves, upgrades, hostile and compose (SHORT=-short: as in make test)
	@scripts/integration

versions: ## run the integration tests in FOLDERS (locks guard lockkeys masters relay operate) with VERSIONS: with each other version of Redis and Valkey, and with all versions mixed (hours)
	@scripts/versions >/dev/null; code=0; all=$$(scripts/versions -offline); mixed=installed,$$(echo $$all | tr ' ' ,); \
	REDLOCK_TEST_PAGE=1 $(TESTS) -run '^(TestMatrix|TestConnecting)$$' ./integration/versions ./integration/clients || code=1; \
	for servers in $(patsubst mixed,$$mixed,$(VERSIONS:each=$$all)); do \
		echo "==> REDLOCK_TEST_SERVERS=$$servers"; \
		REDLOCK_TEST_SERVERS=$$servers SHORT=$(VERSIONS_SHORT) $(TESTS) -timeout 2h -p 1 $(FOLDERS:%=./integration/%) || code=1; \
	done; exit $$code

# This target does not run in parallel with other tests: building the image needs all processors.
# Only make lint runs next to it.
compose: ## test docker-compose.yml, if a Docker engine answers (SHORT=-short: only README's commands, with the program compiled outside of the container)
	@$(TESTS) -timeout 1h ./integration/compose

kubernetes: ## test the Helm chart: lint it, check it against Kubernetes' types, and run its containers' commands (builds helm: 3 minutes of processor time the first time)
	cd deploy/helm/verify && go vet ./... && go test -count=1 -timeout 1h ./...
	go vet -tags integration,helm ./integration/deploy
	$(TESTS),helm -run '^TestKubernetes' ./integration/deploy

overlap: ## test GRANTS (100000) grants of one lock, and of several at a time, by two proxies while masters fail: never two holders at once
	REDLOCK_GRANTS=$(GRANTS) REDLOCK_KEY_GRANTS=$$(($(GRANTS) / 100)) $(LOGGED) -timeout 2h -p 1 -run '^TestOverlap' ./integration/holdings ./integration/locks ./integration/lockkeys

histories: ## test OPS (200000) ordinary commands on lock keys through two proxies while masters fail: each reply is one that a single Redis could have given
	REDLOCK_OPS=$(OPS) REDLOCK_KEY_GRANTS=$$(($(OPS) / 100)) $(LOGGED) -timeout 2h -run '^(TestHistories|TestOverlapOfLockKeys)$$' ./integration/lockkeys

differential: ## compare STEPS (1000000) random commands and PIPELINES (100000) random pipelines on lock keys with one Redis, and as many pipelines that are relayed: every byte of the replies is the same
	REDLOCK_STEPS=$$(($(STEPS) / 2)) REDLOCK_PIPELINES=$(PIPELINES) $(LOGGED) -timeout 6h -run '^(TestLockKeysAsOneRedis|TestPipelinesAsOneRedis)$$' ./integration/lockkeys
	REDLOCK_PIPELINES=$(PIPELINES) $(LOGGED) -timeout 6h -run '^TestDifferential$$' ./proxy

collections: ## test COMMANDS (50000) commands on hashes, lists and sets in lock keys through two proxies against one Redis, as many while masters are killed, and OPS/10 (20000) with faults: each reply is one that a single Redis could have given
	REDLOCK_COLLECTIONS=$(COMMANDS) REDLOCK_COLLECTION_OPS=$$(($(OPS) / 10)) $(LOGGED) -timeout 2h -run '^(TestCollectionsAsOneRedis|TestCollectionsDuringMasterKills|TestHistoriesOfCollections|TestTagsAsOneRedis|TestHistoriesOfTags|TestTagHistoriesWithoutFaults)$$' ./integration/lockkeys

histories-busy: ## test RUNS (1000) times 2,000 commands on lock keys of each mix, AT_ONCE (8) runs at a time, while BUSY (6) loops keep the processors busy and all masters are up: no errors
	REDLOCK_RUNS=$(RUNS) REDLOCK_AT_ONCE=$(AT_ONCE) REDLOCK_BUSY=$(BUSY) $(LOGGED) -timeout 12h -run '^TestHistoriesWithoutFaults$$' ./integration/lockkeys

histories-stalled: ## test STALLS (50) times 2,000 commands on lock keys of each mix while the proxies are stopped and continued at random and all masters are up
	REDLOCK_STALLS=$(STALLS) $(LOGGED) -timeout 6h -run '^TestHistoriesOfStalledProxies$$' ./integration/lockkeys

converge: ## test CONVERGE (500) rounds of clients of two proxies that replace a few keys: after each round, all masters have the same values
	REDLOCK_ROUNDS_CONVERGE=$(CONVERGE) $(LOGGED) -timeout 6h -run '^TestConverge' ./integration/schedules

guard: ## test ROUNDS (500) masters killed without their data while locks are held, then stepped clocks, stopped masters and the wait by lease
	REDLOCK_ROUNDS=$(ROUNDS) $(LOGGED) -timeout 2h -run '^TestGuard' ./integration/guard

masters: ## test MASTERS_ROUNDS (20) changes from three masters to five and back, under load and faults, as many by proxies that are killed, as many joins under load, and a join with MASTERS_LOCKS (100000) locks: no lock is granted twice
	REDLOCK_MASTERS_ROUNDS=$(MASTERS_ROUNDS) REDLOCK_MASTERS_LOCKS=$(MASTERS_LOCKS) $(LOGGED) -timeout 3h ./integration/masters

kept: ## measure the cost of KEPT_LOCKS (100000) kept locks; test KEPT (100) kept locks whose holders are killed, as many whose proxy is killed, as many to MAXHOLD, CUTS (1000) cut connections of holders, and a lock that is kept for KEPT_TIME (1h) while masters fail
	REDLOCK_KEPT=$(KEPT) REDLOCK_CUTS=$(CUTS) REDLOCK_KEPT_TIME=$(KEPT_TIME) REDLOCK_KEPT_LOCKS=$(KEPT_LOCKS) $(LOGGED) -timeout 6h -run '^(TestKept|TestCostOfKeptLocks)' ./integration/locks

reloads: ## test RELOADS (1000) reloads of the configuration under load: no connection, no reply and no lock is lost
	REDLOCK_RELOADS=$(RELOADS) $(LOGGED) -timeout 2h -run '^TestReloadsUnderLoad$$' ./integration/operate

fences: ## test FENCES (100000) locks with fences by two proxies while one master after another restarts without its data: each fence is higher than the last
	REDLOCK_FENCES=$(FENCES) $(LOGGED) -timeout 2h -run '^TestGuardFences$$' ./integration/guard

moves: ## test MOVES (100) moves of the locks to the masters and as many back under load, 30 of 100 with faults; 100 proxies stopped while they relay a lock; and MIX (1000) random rounds of moves, changes of masters and faults
	REDLOCK_MOVES=$(MOVES) REDLOCK_MOVE_STOPS=100 REDLOCK_MIX=$(MIX) $(LOGGED) -timeout 6h ./integration/moving

upgrades: ## test UPGRADES (50) rolling upgrades of two proxies from each of the last two protocols, built from the history, and back, and upgrades of masters, in place and by replacement: under load
	REDLOCK_UPGRADES=$(UPGRADES) $(LOGGED),history -timeout 3h ./integration/upgrade

chaos: ## test CHAOS_GRANTS (1000000) locks during CHAOS_FAULTS (1000) faults of masters, proxies, links and clocks: no lock is granted twice, lost, or reappears
	REDLOCK_CHAOS_GRANTS=$(CHAOS_GRANTS) REDLOCK_CHAOS_FAULTS=$(CHAOS_FAULTS) $(LOGGED) -timeout 6h -run '^TestChaos$$' ./integration/chaos

chaos-holders: ## test HOLDER_GRANTS (100000) locks with SHARED and as many with SLOTS during HOLDER_FAULTS (1000) faults as in chaos: never more holders than slots, never an exclusive lock together with another client
	REDLOCK_CHAOS_HOLDERS=$(HOLDER_GRANTS) REDLOCK_CHAOS_FAULTS=$(HOLDER_FAULTS) $(LOGGED) -timeout 12h -run '^TestHoldersChaos$$' ./integration/chaos

cluster: ## test CLUSTER_GRANTS (100000) locks by clients of a Redis Cluster while its masters are killed, replicas take over and slots move: no lock is granted twice
	REDLOCK_CLUSTER_GRANTS=$(CLUSTER_GRANTS) $(LOGGED) -timeout 2h -run '^TestGrantsDuringChanges$$' ./integration/cluster

hostile: ## test HOSTILE (1h) of hostile clients of all kinds next to honest ones, under the race detector: no crash, no wrong grant, limited memory
	REDLOCK_HOSTILE=$(HOSTILE) $(LOGGED) -timeout 26h ./integration/hostile

hostile-kinds: ## measure for EACH (15s) how long honest clients wait next to each kind of hostile client, and next to harmless ones
	REDLOCK_HOSTILE_EACH=$(EACH) $(LOGGED) -timeout 2h -run '^TestEachKind$$' ./integration/hostile

version: ## print the version
	@echo $(VERSION)

release-snapshot: ## make the files of a release in dist: programs, packages, chart, SBOMs and checksums (half a minute of processor time, 9 minutes the first time)
	scripts/release snapshot

notice: ## write NOTICE from the licences of the linked modules
	go run -C scripts/tools ./notice

fmt: ## run gofmt on every file
	gofmt -w .

bench: ## measure all goals, print one table, and plot docs/locks.svg (twelve minutes; installs HAProxy and nutcracker)
	@scripts/install-deps bench
	go run ./integration/bench all -plot docs/locks.svg $(ARGS)

bench-locks: ## compare this proxy, redsync and a single Redis; ARGS='…' for the benchmark's flags
	go run ./integration/bench locks -client both $(ARGS)

bench-lockkeys: ## compare SET NX PX and EVALSHA on lock keys, and the scripts of a re-entrant lock, with LOCK and UNLOCK
	go run ./integration/bench locks -client both -contenders proxy,lockkeys,reentrant,telling -scenarios c1,c16,c64 $(ARGS)

bench-faults: ## compare LOCK while 2 of 5 masters are killed, stopped or unreachable with LOCK while all masters are up
	go run ./integration/bench faults $(ARGS)

bench-handover: ## compare one lock that passes between 64 clients of two proxies with redsync; ARGS='…' as above
	go run ./integration/bench handover $(ARGS)

bench-idle: ## measure the proxy's memory for each of 10,000 idle clients
	go run ./integration/bench idle $(ARGS)

bench-relay: ## compare relaying to an upstream Redis with HAProxy and nutcracker, which it installs; ARGS='…' as above
	@scripts/install-deps bench
	go run ./integration/bench relay $(ARGS)

bench-relay-soak: ## compare memory per idle client with HAProxy's, then connect and disconnect CONNECTS (500000) clients
	@scripts/install-deps bench
	go run ./integration/bench relay -idle -connects $(CONNECTS) $(ARGS)

bench-scripts: ## compare LOCK next to 50 clients with endless scripts with LOCK without them; ARGS='…' as above
	go run ./integration/bench scripts $(ARGS)

fuzz: ## run every fuzz target for FUZZTIME (30s) each
	@FUZZTIME=$(FUZZTIME) scripts/fuzz

demo: ## run a demo with embedded masters; ARGS='…' for further flags
	go run . demo $(ARGS)

image: ## build the container image redlock-proxy
	docker build --build-arg COMMIT=$(COMMIT) -t $(IMAGE):$(VERSION) -t $(IMAGE):latest .
