# Sluice. `make help` explains every target; what a target does stands in .ci/ and tests/.
SHELL := /bin/bash
.DEFAULT_GOAL := help

export PATH := $(CURDIR)/build/toolchain/go/bin:$(PATH)
# The same for all Go code, so that programs, tests and lint share what is compiled: with other values Go compiles each dependency again.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath

# The tiers of `make test`. The aim is 20 minutes from a new clone on 2 cores, without downloads. The fast ones come first.
QUICK := unit go controlplane cluster model libiscsi qemu hostile isolation
# The tiers that only `make test-all` adds. There go-race takes the place of go: the same tests, under the race detector.
LONG := charts ansible operator csi corpus tsan unit-release ceph operations faults documents robustness scenarios guest ipsec passthrough powercut package tidy
ALL := $(subst go,go-race,$(QUICK)) $(LONG)
# `make lint test` counts lint's checks in the closing line too.
LINTED := $(if $(filter lint,$(MAKECMDGOALS)),--also lint)

.PHONY: help deps build build-gateway build-controlplane build-operator build-cluster lint check format test test-all fuzz bench bench-full bench-placement bench-failover bench-instructions bench-isolation bench-isolation-guest bench-scale \
        robustness robustness-long robustness-mutations scenarios demo demo-single demo-install package repo images test-images e2e-k8s docs \
        generate clean distclean test-repeat test-csi-node test-go-race test-install test-package-platforms $(addprefix test-,$(QUICK) $(LONG))

help: ## this list
	@awk -F ' ## ' '/^[a-z0-9-]+:.* ## / {split($$1, t, ":"); printf "  make %-18s %s\n", t[1], $$2}' Makefile

deps: ## everything that building, testing and packaging need, from Debian's packages and a Go module
	@.ci/deps build clang lint model clients guest bench package package-test faults ceph go docs

build: build-cluster build-operator ## the programs, optimised, into build/bin/

# The parts of it, for targets that need only some of them.
build-gateway:
	@.ci/deps build
	@.ci/compile release sluice-gateway

build-controlplane:
	@.ci/deps go
	@.ci/compile-go controlplane

build-operator:
	@.ci/deps go
	@.ci/compile-go operator

build-cluster: build-gateway build-controlplane

# With test-all in the same call, clang-tidy is a tier of its own, which .ci/ahead prepares while other tiers wait.
lint: ## format, clang-tidy, vet and staticcheck, arrows between rooms, protobuf, shell, python, names
	@rm -f build/results/lint.txt
	@.ci/deps build clang lint go
	@.ci/tier lint tests/lint/run $(if $(filter test-all,$(MAKECMDGOALS)),quick,all)

check: ## lints and tests what differs from origin/main (or BASE), under a minute where the tree was built before
	@.ci/deps build lint go
	@.ci/check $(BASE)

format: ## C++ as .clang-format says, Go as gofmt does, in place
	@.ci/deps lint
	@git ls-files -z '*.h' '*.cc' | xargs -0 -r clang-format-19 -i
	@git ls-files -z '*.go' | xargs -0 -r gofmt -w

test: ## the tiers without guests, Ceph and Kubernetes, then their durations and one line that counts: N passed, N failed, N skipped
	@.ci/tiers $(LINTED) --ahead $(QUICK)

test-all: ## every tier, Go under the race detector: one hour on 2 cores
	@.ci/tiers $(LINTED) --ahead $(ALL)

test-repeat: ## RUNS (10) runs of the tiers of `make test`, or of TIERS; LOADED (5) of them beside four busy processes; lists each failure; hours
	@.ci/deps go load
	@.ci/repeat $(or $(RUNS),10) $(or $(LOADED),5) $(or $(TIERS),$(QUICK))

test-unit: ## unit and session tests of the gateway, with asserts, under AddressSanitizer and UndefinedBehaviorSanitizer
	@.ci/deps build clang
	@.ci/compile asan unit_tests
	@.ci/tier unit tests/unit/run asan

test-unit-release: ## the same as shipped: g++, optimised, without asserts
	@.ci/deps build
	@.ci/compile release unit_tests
	@.ci/tier unit-release tests/unit/run release

test-go: ## the Go parts' own tests
	@.ci/deps go build
	@.ci/tier go tests/go/run

test-go-race: ## the same under the race detector
	@.ci/deps go build
	@.ci/tier go-race tests/go/run -race

test-controlplane: build-controlplane ## control plane and CLI as people use them: certificates, restart, backup and restore
	@.ci/deps clients
	@.ci/tier controlplane tests/controlplane/run

test-cluster: build-cluster ## clusters of real processes: planned moves, rebalancing, whole devices, snapshots, read-only LUNs
	@.ci/deps go faults
	@.ci/tier cluster tests/cluster/run

test-charts: ## the Helm charts: what they render, refuse and alert on; schemas, metrics, every value (the first time 3 minutes more)
	@.ci/deps go charts
	@.ci/charts/build
	@.ci/tier charts tests/charts/run

test-operator: build ## the operator against a real Kubernetes API server, control plane and gateways (the first time 10 minutes more)
	@.ci/deps clients faults charts
	@.ci/kubernetes/build
	@.ci/charts/build
	@.ci/tier operator tests/operator/run

test-csi: build ## the CSI driver's controller: csi-sanity and its own rules, against a real control plane and gateways, and Kubernetes' scheduler and provisioner (the first time 10 minutes more)
	@.ci/deps clients faults
	@.ci/kubernetes/build etcd kube-apiserver kube-controller-manager kube-scheduler csi-provisioner
	@.ci/tier csi tests/csi/run

test-csi-node: build ## the CSI driver's node service on a real Linux initiator with dm-multipath, in a QEMU guest; 10 minutes
	@.ci/deps guest clients
	@.ci/tier csi-node tests/csi/node-run

test-corpus: ## every fuzzer replays its corpus, same sanitizers
	@.ci/deps build clang
	@.ci/compile asan
	@.ci/tier corpus tests/corpus/run

test-model: ## ownership and retries, model-checked: every invariant holds, every rule is needed
	@.ci/deps model
	@.ci/tier model tests/model/run

test-tsan: ## unit and session tests of the gateway under ThreadSanitizer
	@.ci/deps build clang
	@.ci/compile tsan unit_tests
	@.ci/tier tsan tests/unit/run tsan

test-libiscsi: build-gateway ## libiscsi's 230 conformance tests, one process each
	@.ci/deps clients
	@.ci/tier libiscsi tests/libiscsi/run

test-qemu: build-gateway ## qemu-img and qemu-io over iscsi://, with and without CHAP
	@.ci/deps clients
	@.ci/tier qemu tests/qemu/run

test-ansible: build-controlplane ## the Ansible collection against a real control plane: idempotence, check mode, errors, no secret in output
	@.ci/deps ansible
	@.ci/ansible
	@.ci/tier ansible tests/ansible/run

test-ceph: build-cluster ## a real Ceph: the backend's tests and conformance; a gateway killed, fenced, without room, disks, monitors, network; a cluster over it
	@.ci/deps build clients ceph go faults
	@.ci/compile release rbd_test control_rbd_test
	@.ci/tier ceph tests/ceph/run

test-hostile: build-gateway ## bad peers: each named attack, while another session goes on
	@.ci/deps clients
	@.ci/tier hostile tests/hostile/run

test-isolation: build-gateway ## a disk that hangs delays no LUN on another disk
	@.ci/deps go
	@.ci/tier isolation tests/isolation/run

test-operations: build-cluster ## starts that fail, reloads and stops under load, figures, secrets; the benchmark's own tests
	@.ci/deps clients plots
	@.ci/compile release faulty-gateway
	@.ci/tier operations tests/operations/run

test-faults: build-cluster ## every real fault of gateways, disks, etcd and replicas is a finding with its cause, until it is repaired
	@.ci/deps go faults
	@.ci/tier faults tests/faults/run

test-documents: build-cluster ## the documentation site builds without a warning; the commands of the pages that a reader tries first, as written
	@.ci/deps clients docs faults go
	@.ci/tier documents tests/documents/run

test-robustness: build-cluster ## SIGKILL, SIGSTOP, cut links, lost packets, resets, devices that hang, fail or are full, other processes, pools and images under load: histories judged, 6 minutes
	@.ci/deps go faults
	@.ci/compile release faulty-gateway
	@.ci/tier robustness tests/robustness/run

test-scenarios: build-cluster ## in a cluster under load: rolling upgrade, control plane restored, 40 seconds; `make scenarios` has all
	@.ci/deps go faults
	@.ci/tier scenarios tests/scenarios/run rolling-upgrade controlplane-restored

test-guest: build-cluster ## the Linux initiator in a QEMU guest: mkfs, fio verify, fstrim, resize, CHAP; sessions while a disk hangs for 60 s; SCENARIOS=host-check: faults of a host that sluice-host finds
	@.ci/deps guest clients go
	@.ci/tier guest tests/guest/run $(SCENARIOS)

test-ipsec: build-gateway ## the IPsec recipe of SECURITY.md in a QEMU guest: nothing of a host's data is on the wire in clear
	@.ci/deps guest clients
	@.ci/tier ipsec tests/ipsec/run

test-passthrough: build-gateway ## SCSI devices and NVMe namespaces in a QEMU guest: conformance, a gateway on them, a LUN exported again
	@.ci/deps guest clients
	@.ci/compile release passthrough_conformance
	@.ci/tier passthrough tests/passthrough/run

test-powercut: build-gateway ## the gateway's machine loses power under load: what was acknowledged is there
	@.ci/deps guest clients
	@.ci/tier powercut tests/powercut/run

test-package: ## the Debian packages: lintian, manual; in a bare Debian with systemd: services, node init and join, a cluster, upgrade, removal; BEFORE=REVISION: also an upgrade from that
	@$(MAKE) --no-print-directory package
	@.ci/deps package-test repository clients ansible
	@.ci/ansible
ifneq ($(BEFORE),)
	@.ci/packaging/before $(BEFORE)
endif
	@BEFORE=$(BEFORE) .ci/tier package tests/package/run

test-tidy: ## clang-tidy over the gateway; a part of `make lint`, too
	@.ci/deps build clang lint
	@.ci/tier tidy tests/lint/run tidy

PLATFORMS := bookworm-amd64 trixie-amd64
test-package-platforms: ## packages of PLATFORMS (all suites) install from one repository into bare roots, and their programs start; half an hour the first time
	@$(foreach platform,$(PLATFORMS),$(MAKE) --no-print-directory package SUITE=$(firstword $(subst -, ,$(platform))) ARCH=$(lastword $(subst -, ,$(platform))) &&) true
	@.ci/deps package-test repository clients
	@.ci/tier package-platforms tests/package/platforms $(PLATFORMS)

test-install: package ## what `make demo-install` shows, as a test; 8 minutes or more without KVM
	@.ci/deps package-test repository clients guest
	@.ci/tier install tests/demo/install

fuzz: ## every fuzzer for FUZZ_SECONDS (60) seconds; findings go to build/fuzz/findings
	@.ci/deps build clang
	@.ci/compile fuzz
	@tests/corpus/fuzz $(or $(FUZZ_SECONDS),60)

robustness: build-cluster ## faults under load with a new seed, or SEED=N, for DURATION (45s): what test-robustness does, and the same on a real Ceph, shown
	@.ci/deps go faults ceph
	@.ci/compile release faulty-gateway
	@SLUICE_RBD=1 V=1 .ci/tier robustness tests/robustness/run -seed $(or $(SEED),0)

robustness-long: build-cluster ## RUNS (40) runs of faults of DURATION (90s) each, from SEED on; ends at the first that fails
	@.ci/deps go faults ceph
	@.ci/compile release faulty-gateway
	@SLUICE_RBD=1 DURATION=$(or $(DURATION),90s) V=1 .ci/tier robustness tests/robustness/run -seed $(or $(SEED),0) -runs $(or $(RUNS),40)

robustness-mutations: build-cluster ## gateways that each lack a safety rule, MUTATION (all) by regular expression: each must be found out; 50 minutes
	@.ci/deps go faults ceph
	@.ci/compile mutation sluice-gateway faulty-gateway base_test simulation_test
	@V=1 .ci/tier mutations tests/robustness/mutations '$(or $(MUTATION),.)'

scenarios: build-cluster ## in a cluster under load: rolling upgrade, a switch down, etcd lost for a minute, control plane restored; 4 minutes
	@.ci/deps go faults
	@V=1 .ci/tier scenarios tests/scenarios/run

# All but passthrough, whose aims take longer windows than fifteen minutes have room for.
SHORT_EXPERIMENTS := backing-stores baseline growth ramp scale sweep switches two-lines

bench: build-cluster ## engine, forwarder and image beside tgt, librbd and a bare echo, then short experiments; at most 15 minutes
	@.ci/deps bench ceph
	@bench/run.sh --rounds 3 --window 0.4 --budget 170
	@bench/experiments/run --short --budget 600 $(SHORT_EXPERIMENTS)

bench-full: build-cluster ## the whole matrix, and every experiment at full length; hours
	@.ci/deps bench ceph
	@bench/run.sh --full
	@bench/experiments/run --full

bench-placement: ## package placement at full size: time, balance, moves, hops; under 2 minutes
	@.ci/deps go plots
	@mkdir -p build/bench/results
	@bench/report/build --facts >build/bench/results/placement.jsonl
	@GOMAXPROCS=1 go run ./controlplane/internal/placement/simulate >>build/bench/results/placement.jsonl
	@bench/report/build build/bench/results/placement.jsonl --print

bench-failover: build-cluster ## stalls of KILLS (100) kills, MOVES (100) planned moves, LOSSES (20) node losses, fewer with more LUNs (LUNS=1,100,1000), and of a Linux host at GUEST_KILLS (5) kills; BACKEND=rbd: on a real Ceph
	@.ci/deps go faults plots guest $(if $(filter rbd,$(BACKEND)),ceph)
	@mkdir -p build/tools
	@go build -o build/tools/ ./bench/failover
ifneq ($(GUEST_KILLS),0)
	@mkdir -p build/results && rm -f build/results/linux-stalls.jsonl
	@BACKEND=$(or $(BACKEND),local) KILLS=$(or $(GUEST_KILLS),5) SLUICE_STALLS=$(CURDIR)/build/results/linux-stalls.jsonl tests/demo/cluster
endif
	@build/tools/failover -kills $(or $(KILLS),100) -moves $(or $(MOVES),100) -losses $(or $(LOSSES),20) $(if $(LUNS),-luns '$(LUNS)') \
	  $(if $(filter-out 0,$(or $(GUEST_KILLS),5)),-also build/results/linux-stalls.jsonl) $(if $(filter rbd,$(BACKEND)),-ceph tests/lib/mini-ceph)

bench-instructions: ## instructions of the gateway per command, by room; the same on a busy machine; FUNCTIONS: also the N most expensive
	@.ci/deps build instructions
	@.ci/compile release commands_bench
	@bench/instructions --functions $(or $(FUNCTIONS),0)

bench-isolation-guest: build-gateway ## p99 of a Linux host's healthy LUNs while another disk hangs, over that before: median of ROUNDS (5), HANG (30) seconds each; 20 minutes
	@.ci/deps guest clients go
	@ROUNDS=$(or $(ROUNDS),5) HANG=$(or $(HANG),30) tests/guest/hung-disk

bench-isolation: build-gateway ## one of two LUNs stalls: what a host notices on the other one, beside tgt; REPETITIONS (7), 9 minutes
	@.ci/deps go bench plots
	@mkdir -p build/tools
	@go build -o build/tools/isolation ./bench/isolation
	@taskset -c 1-$$(($$(nproc) - 1)) build/tools/isolation -repetitions $(or $(REPETITIONS),7)

bench-scale: build-cluster ## 1,024 LUNs, 1,024 sessions, 16 gateways on one machine: memory, start, failover of a whole gateway
	@.ci/deps go faults plots
	@mkdir -p build/tools
	@go build -o build/tools/ ./bench/scale
	@build/tools/scale

demo: build-cluster ## three gateways, a real Linux host with multipath, the owner killed under load: no error; KEEP=1 leaves it running, BACKEND=rbd does it on a real Ceph
	@.ci/deps guest clients $(if $(filter rbd,$(BACKEND)),ceph)
	@BACKEND=$(or $(BACKEND),local) tests/demo/cluster $(if $(KEEP),--keep)

demo-single: build-gateway ## one gateway without a control plane, a real Linux initiator on it, checksums, live figures
	@.ci/deps guest clients
	@tests/demo/run

demo-install: package ## the commands of docs/INSTALL.md on three bare Debian machines and a bare host: packages, a cluster, a multipath disk, a server without power, a reboot of the host
	@.ci/deps package-test repository clients guest
	@tests/demo/install

images: build ## container images, their package lists, and the chart with their digests, into build/images/ (no Docker, no registry)
	@.ci/deps images go charts
	@.ci/charts/build
	@.ci/images

test-images: build ## two builds of the images are the same bytes, their programs start, their lists are whole; 5 minutes
	@.ci/deps images go charts registry
	@.ci/charts/build
	@.ci/tier images tests/images/run

e2e-k8s: images ## Sluice in a real Kubernetes, with a real host, under faults (the first time half an hour more); FAULTS='csi kill-pod scale neighbours readme', KEEP=1, BEFORE=REVISION to upgrade from
	@.ci/deps guest clients ceph cluster go
	@.ci/charts/build
	@.ci/kubernetes/build cluster
	@.ci/kubernetes/images
ifneq ($(BEFORE),)
	@.ci/kubernetes/before $(BEFORE)
endif
	@V=1 BEFORE=$(BEFORE) .ci/tier e2e-k8s tests/kubernetes/run $(FAULTS)

# Packages of another suite than this have a gateway that is compiled in a root of that suite. The commands of the control
# plane, which write the manual pages, run here in each case.
SUITE := bookworm
ARCH := amd64
HERE := $(filter bookworm-amd64,$(SUITE)-$(ARCH))

package: $(if $(HERE),build-cluster,build-controlplane) ## Debian packages of gateway, control plane and CLI into build/packages/; SUITE=trixie for Debian 13 (the first time 15 minutes more)
	@.ci/deps package go $(if $(HERE),,package-root)
	@.ci/packaging/build $(SUITE) $(ARCH)

repo: package images ## build/repository/: a signed apt repository (apt/) of all packages in build/packages/, and OCI layouts of images and charts (oci/), as plain files for web server and registry; SIGN_WITH=KEY, REPOSITORY_URI
	@.ci/deps repository
	@.ci/packaging/repository
	@rm -rf build/repository/oci && cp -r build/images/layouts build/repository/oci

docs: ## the documentation site into build/docs/ (index.html needs no server and no network); fails on a dead link or anchor
	@.ci/deps docs go
	@.ci/docs/build

generate: ## generates what is committed and made from something else again; fails where it was not current
	@.ci/deps go proto
	@.ci/generate

clean: ## what was built; downloads (guest image, Go toolchain, roots of other suites) stay
	@find build -mindepth 1 -maxdepth 1 ! -name guest ! -name toolchain ! -name roots -exec rm -rf {} + 2>/dev/null || true

distclean: ## everything under build/
	@rm -rf build
