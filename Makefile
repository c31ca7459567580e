# SPDX-FileCopyrightText: The Handwerk Authors
# SPDX-License-Identifier: Apache-2.0

GOLANGCI_VERSION ?= v2.15.0
GOLANGCI         := bin/golangci-lint-$(GOLANGCI_VERSION)
ACTIONLINT_VERSION ?= v1.7.7
IMAGE            ?= handwerk:dev
MAIN             ?= ./cmd/operator
PLATFORMS        ?= linux/amd64,linux/arm64
IMAGE_FLAGS      ?= -licenses Apache-2.0 -- run --config /etc/handwerk
# The commit that make bench-quick compares with: without changes the one before HEAD.
AGAINST          ?= $(shell git diff --quiet HEAD && echo HEAD~1 || echo HEAD)
# The language server that editors run for YAML; make test-editor gets it from npm.
YAML_LANGUAGE_SERVER_VERSION ?= 1.19.2

.DEFAULT_GOAL := help

##@ Use
.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*##/ {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## Watch a Foo become a Deployment with Pods; it needs nothing else.
	@exec bin/operator play --config samples/foo --examples

.PHONY: demo-controlplane
demo-controlplane: build controlplane ## Watch Foos become Deployments with running Pods on a real local control plane.
	@go build -o bin/demo ./hack/demo
	@exec bin/demo $(DEMO_FLAGS)

.PHONY: build
build: ## Build bin/operator.
	@CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/operator ./cmd/operator

.PHONY: controlplane
controlplane: ## Build bin/controlplane, a real local control plane, and its bin/kubectl (minutes the first time).
	@hack/controlplane/build.sh bin

.PHONY: image
image: ## Build the image $(IMAGE) of $(MAIN) for $(PLATFORMS) into bin/image.tar; needs no Docker.
	@cd hack/image && go run . -dir $(CURDIR) -o $(CURDIR)/bin/image.tar -main $(MAIN) -name $(IMAGE) \
		-platforms $(PLATFORMS) $(IMAGE_FLAGS)

.PHONY: release-dry-run
release-dry-run: ## Make the files of a release in bin/release, without a network; RELEASE_FLAGS are those of hack/release.
	@rm -rf bin/release
	@go run ./hack/release $(RELEASE_FLAGS)
	@ls -l bin/release

##@ Work on it
.PHONY: test
test: controlplane ## Run all tests, against the real control plane, nearly all with -race.
# A program with -race sleeps for a second at its end, to report races of goroutines that are left. A tenth of it will do.
# The loader of YAML starts no goroutine, and its tests make thousands of mistakes, which take three times as long with -race.
	@rm -f bin/race.log
	RACE_LOG=$(CURDIR)/bin/race.log GORACE=atexit_sleep_ms=100 go test -race -exec "$(CURDIR)/hack/race.sh" -timeout 30m \
		$$(go list ./... | grep -v /dsl/config$$)
	@cat bin/race.log 2> /dev/null || true
	go test ./dsl/config
	go run ./cmd/operator test samples
	cd hack/controlplane && go test -race -tags assets ./launch/...
	cd hack/image && go vet ./... && go test -count=1 ./...
	cd hack/monitoring && go vet ./... && go test -count=1 ./...
	cd hack/chart && go vet ./... && go test -count=1 ./...
	cd hack/example-manager && go vet ./... && go test -count=1 ./...
	cd bench && go vet ./... && go test ./...

.PHONY: test-stress
test-stress: controlplane ## Run the tests of PACKAGES 20 times in a row with all cores busy elsewhere.
	@hack/stress.sh $(PACKAGES)

.PHONY: test-editor
test-editor: ## Test what editors make of the published schema; needs node and npm.
	@command -v node > /dev/null && command -v npm > /dev/null || \
		{ echo "test-editor needs node and npm, which run and install the YAML language server" >&2; exit 1; }
	npm install --silent --no-audit --no-fund --prefix bin/editor yaml-language-server@$(YAML_LANGUAGE_SERVER_VERSION)
	go test -count=1 -tags editor ./hack/editor

.PHONY: likeness
likeness: controlplane ## Compare the sandbox with a real server by suites of other projects, or by SUITE alone.
	cd hack/likeness && go vet . && go test . && go run . $(if $(FOR),-for $(FOR)) $(if $(SEED),-seed $(SEED)) $(LIKENESS) $(SUITE)

.PHONY: lint
lint: $(GOLANGCI) ## Run the linters.
	$(GOLANGCI) run ./...
	cd hack/controlplane && $(CURDIR)/$(GOLANGCI) run ./launch/...
	cd hack/image && $(CURDIR)/$(GOLANGCI) run ./...
	cd hack/monitoring && $(CURDIR)/$(GOLANGCI) run ./...
	cd hack/chart && $(CURDIR)/$(GOLANGCI) run ./...
	cd hack/example-manager && $(CURDIR)/$(GOLANGCI) run ./...
	go run github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION) -shellcheck= -pyflakes=
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }

.PHONY: bench
bench: controlplane ## Measure speed and memory (half an hour); docs/performance.md explains the figures.
	cd bench && go run . $(BENCH_FLAGS)

.PHONY: bench-quick
bench-quick: controlplane ## Say what has moved since the commit AGAINST, and how sure it is (4 minutes).
	cd bench && go run . -against $(AGAINST) -scenarios backlog,restart,children,deletion -n 400 -rounds 7 -rest 0 $(BENCH_FLAGS)

.PHONY: bench-growth
bench-growth: ## Measure the cost of a handler, child, namespace and resource, with few and with many (2 minutes).
	cd engine/scenarios/growth && HANDWERK_GROWTH=1 go test -count 1 -timeout 30m

.PHONY: schema
schema: ## Write docs/operator.schema.json, docs/part.schema.json and docs/cases.schema.json anew.
	go test ./dsl/config -run TestThePublishedSchema -update
	go test ./sandbox/cases -run TestThePublishedSchema -update

.PHONY: reference
reference: ## Write docs/reference.md anew: every field, and every function of expressions.
	go run ./hack/reference

.PHONY: pictures
pictures: build ## Make the pictures of README.md anew, from what operator writes; on Linux.
	go run ./hack/pictures

.PHONY: kinds
kinds: controlplane ## Ask the API server anew for what the project knows of Kubernetes' own kinds.
	go run ./hack/kinds

$(GOLANGCI):
	@echo "building golangci-lint $(GOLANGCI_VERSION)"
	@GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv bin/golangci-lint $@
