// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/handwerk-dev/handwerk/"

// TestImportsPointDown holds the map of docs/design.md: cmd → engine → engine/* → dsl, handlers →
// dsl, dsl/config → dsl.
func TestImportsPointDown(t *testing.T) {
	allowed := map[string][]string{
		"dsl/words":         {},
		"dsl/bookkeeping":   {},
		"dsl/logmark":       {},
		"dsl/plain":         {},
		"dsl/guard":         {},
		"dsl/shape":         {},
		"dsl/openapi":       {},
		"dsl/kinds":         {"dsl/shape", "dsl/words"},
		"dsl/builtin":       {"dsl/kinds", "dsl/openapi"},
		"dsl":               {"dsl/bookkeeping", "dsl/guard", "dsl/plain", "dsl/shape", "dsl/words"},
		"dsl/draw":          {"dsl", "dsl/shape", "dsl/words"},
		"dsl/draw/layout":   {},
		"dsl/draw/svg":      {"dsl/draw", "dsl/draw/layout"},
		"dsl/actions":       {"dsl", "dsl/shape"},
		"dsl/form":          {"dsl/words"},
		"dsl/source":        {"dsl/form"},
		"dsl/expr":          {"dsl", "dsl/shape", "dsl/words"},
		"dsl/expr/check":    {"dsl", "dsl/expr", "dsl/shape", "dsl/words"},
		"dsl/crd":           {"dsl", "dsl/form", "dsl/plain", "dsl/shape"},
		"dsl/config":        {"dsl", "dsl/actions", "dsl/builtin", "dsl/crd", "dsl/expr", "dsl/expr/check", "dsl/form", "dsl/shape", "dsl/source", "dsl/words"},
		"handlers":          {"dsl", "dsl/actions", "dsl/expr", "dsl/expr/check", "dsl/form", "dsl/logmark", "dsl/plain", "dsl/shape", "dsl/words", "handlers/apply", "handlers/etcd"},
		"handlers/apply":    {"dsl", "dsl/actions", "dsl/expr", "dsl/expr/check", "dsl/form", "dsl/shape", "dsl/words", "handlers/graph"},
		"handlers/etcd":     {},
		"handlers/graph":    {},
		"engine/cause":      {"dsl", "dsl/bookkeeping", "dsl/plain"},
		"engine/progress":   {"dsl", "engine/backoff"},
		"engine/book":       {"dsl", "dsl/bookkeeping", "engine/cause", "engine/pack", "engine/progress"},
		"engine/pack":       {},
		"engine/budget":     {},
		"engine/gone":       {},
		"engine/patch":      {"dsl", "dsl/plain", "engine/gone"},
		"engine/drift":      {"dsl", "dsl/bookkeeping"},
		"engine/child":      {"dsl", "dsl/bookkeeping", "dsl/plain", "engine/drift", "engine/gone", "engine/pack", "engine/patch"},
		"engine/scan":       {},
		"engine/cached":     {"dsl", "dsl/bookkeeping", "engine/scan"},
		"engine/wire":       {"engine/cached", "engine/scan"},
		"engine/queue":      {},
		"engine/catalog":    {"dsl", "dsl/openapi"},
		"engine/lease":      {"dsl", "dsl/logmark"},
		"engine/ops":        {"dsl"},
		"engine/rights":     {"dsl"},
		"engine/loop":       {"dsl/plain"},
		"engine/trim":       {},
		"engine/timer":      {"dsl"},
		"engine/backoff":    {},
		"engine/fate":       {"dsl/logmark", "engine/backoff"},
		"engine/claim":      {"dsl"},
		"engine/fence":      {},
		"engine/outage":     {"dsl/logmark"},
		"engine/busy":       {"dsl/logmark"},
		"engine/events":     {"dsl", "dsl/logmark", "engine/fence", "engine/gone", "engine/ops"},
		"engine/scope":      {},
		"engine/health":     {"dsl/logmark"},
		"engine/crd":        {"dsl", "dsl/bookkeeping", "engine/outage", "engine/patch"},
		"engine/cleanup":    {"dsl", "engine/catalog", "engine/outage", "engine/patch", "engine/register", "engine/scope"},
		"engine/register":   {"dsl", "dsl/logmark", "engine/backoff"},
		"engine/daemon":     {"dsl", "dsl/guard", "dsl/logmark", "engine/attempt", "engine/cached", "engine/fence", "engine/ops", "engine/patch", "engine/progress", "engine/watch"},
		"engine/report":     {"engine/feed", "engine/health", "engine/ops"},
		"engine/sweep":      {"dsl", "dsl/logmark", "engine/claim", "engine/filter"},
		"engine/retired":    {"dsl", "dsl/logmark", "engine/cached", "engine/feed", "engine/health", "engine/register", "engine/watch"},
		"engine/conditions": {"dsl", "dsl/logmark", "engine/patch"},
		"engine/filter":     {"dsl"},
		// Rooms that join a few of the others.
		"engine/watch":     {"dsl", "dsl/logmark", "engine/cached"},
		"engine/access":    {"dsl", "dsl/logmark", "dsl/plain", "engine/backoff", "engine/catalog", "engine/gone", "engine/ops", "engine/rights"},
		"engine/preflight": {"dsl", "dsl/builtin", "dsl/kinds", "dsl/logmark", "dsl/shape", "engine/catalog", "engine/crd", "engine/ops", "engine/outage"},
		"engine/attempt":   {"dsl", "dsl/guard", "dsl/logmark", "engine/book", "engine/cause", "engine/fence", "engine/ops", "engine/progress"},
		"engine/plan":      {"dsl", "dsl/guard", "engine/book", "engine/claim", "engine/conditions", "engine/family", "engine/ledger", "engine/machine", "engine/ops", "engine/progress"},
		"engine/ledger":    {"dsl", "dsl/logmark", "engine/book", "engine/pack", "engine/patch"},
		"engine/dial":      {"dsl", "dsl/logmark", "engine/lease", "engine/ops", "engine/outage", "engine/wire"},
		"engine/inbox":     {"dsl", "engine/cached", "engine/catalog", "engine/fate", "engine/loop", "engine/ops", "engine/queue", "engine/watch"},
		"engine/feed": {
			"dsl", "engine/backoff", "engine/cached", "engine/catalog", "engine/gone", "engine/health", "engine/ops", "engine/outage", "engine/rights", "engine/scope", "engine/watch",
		},
		"engine/feeds":  {"dsl", "engine/feed", "engine/gone", "engine/health", "engine/scope", "engine/watch"},
		"engine/roster": {"engine/feed"},
		"engine/family": {
			"dsl", "dsl/logmark", "engine/budget", "engine/cached", "engine/catalog", "engine/child", "engine/claim", "engine/drift", "engine/events", "engine/feed",
			"engine/fence", "engine/gone", "engine/health", "engine/inbox", "engine/loop", "engine/ops", "engine/pack", "engine/patch", "engine/register", "engine/retired",
			"engine/sweep", "engine/watch",
		},
		"engine/memory":   {"dsl", "engine/attempt", "engine/family", "engine/filter", "engine/inbox", "engine/ledger", "engine/loop", "engine/machine", "engine/related", "engine/sweep", "engine/timer"},
		"engine/departed": {"engine/family", "engine/fate", "engine/feed", "engine/inbox", "engine/memory", "engine/queue", "engine/indexes", "engine/related"},
		"engine/worker":   {"engine/attempt", "engine/backoff", "engine/busy", "engine/inbox", "engine/memory", "engine/plan", "engine/queue"},
		"engine/saying":   {"dsl", "dsl/plain", "engine/book", "engine/conditions", "engine/filter", "engine/ledger", "engine/memory", "engine/patch", "engine/plan"},
		"engine/clock":    {"dsl", "engine/attempt", "engine/book", "engine/ledger", "engine/plan", "engine/progress", "engine/timer"},
		"engine/activity": {"dsl", "dsl/logmark", "engine/attempt", "engine/child", "engine/events", "engine/fence", "engine/ops", "engine/progress"},
		"engine/beside":   {"dsl", "engine/family", "engine/inbox", "engine/sweep"},
		"engine/draft":    {"dsl", "engine/book", "engine/patch"},
		"engine/machine":  {"dsl", "dsl/logmark", "dsl/plain", "engine/attempt", "engine/ops", "engine/patch"},
		"engine/moves":    {"dsl", "engine/events", "engine/machine", "engine/memory", "engine/ops", "engine/plan"},
		"engine/part":     {"dsl", "engine/attempt", "engine/backoff", "engine/cause", "engine/filter", "engine/ops", "engine/progress"},
		"engine/client":   {"dsl", "engine/catalog", "engine/child", "engine/feed", "engine/fence", "engine/patch"},
		"engine/index":    {},
		"engine/indexes":  {"dsl", "dsl/guard", "dsl/plain", "engine/cached", "engine/feed", "engine/filter", "engine/health", "engine/inbox", "engine/index", "engine/loop", "engine/ops", "engine/watch"},
		"engine/related":  {"dsl", "dsl/guard", "engine/book", "engine/cached", "engine/feed", "engine/inbox", "engine/watch"},
		"engine": {
			"engine/activity", "engine/beside", "engine/draft", "engine/moves", "engine/part", "engine/clock", "engine/daemon", "engine/departed", "engine/saying", "engine/worker",
			"engine/attempt", "engine/client", "engine/conditions", "engine/filter", "engine/ledger", "engine/plan",
			"dsl", "dsl/logmark", "dsl/plain", "engine/book", "engine/cached", "engine/cause", "engine/catalog", "engine/child", "engine/gone", "engine/lease", "engine/ops",
			"engine/patch", "engine/progress", "engine/queue", "engine/rights", "engine/scope", "engine/watch",
			"engine/busy", "engine/dial", "engine/events", "engine/fate", "engine/fence", "engine/claim", "engine/loop", "engine/outage", "engine/timer",
			"engine/access", "engine/budget", "engine/family", "engine/feed", "engine/feeds", "engine/health", "engine/inbox", "engine/indexes", "engine/memory", "engine/preflight", "engine/register", "engine/related", "engine/report", "engine/roster", "engine/trim",
		},
		"engine/enginetest":                    nil, // test kits may use everything
		"engine/enginetest/internal/apiserver": {},
		"engine/e2e/cluster":                   nil,
		"cmd":                                  {"dsl", "dsl/actions", "dsl/config", "dsl/crd", "dsl/draw", "dsl/draw/svg", "dsl/logmark", "dsl/source", "dsl/words", "engine", "engine/access", "engine/cleanup", "engine/crd", "engine/ops", "engine/preflight", "engine/rights"},
		"cmd/operator":                         {"cmd", "handlers"},
		"samples/kopf":                         {"cmd", "dsl", "engine", "handlers"},
		"hack/demo":                            {},
		"hack/kinds":                           {"dsl/builtin", "dsl/kinds", "dsl/openapi"},
	}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		want, known := allowed[name]
		if !known {
			t.Errorf("package %s is not on the map: add it to docs/design.md and to this test", name)
			continue
		}
		if want == nil {
			continue
		}
		for _, i := range p.Imports {
			if ours, ok := strings.CutPrefix(i, module); ok && !slices.Contains(want, ours) {
				t.Errorf("%s imports %s", name, ours)
			}
		}
	}
}

// floors of the engine, the lowest first. Commons are what the lowest has in common.
var (
	commons = []string{"backoff", "gone", "pack", "scan"}
	floors  = [][]string{
		{
			"budget", "busy", "cached", "catalog", "cause", "claim", "drift", "fate", "fence", "filter", "health", "index", "lease", "loop", "ops", "outage", "patch",
			"progress", "queue", "register", "rights", "scope", "timer", "trim",
		},
		{"access", "book", "child", "cleanup", "conditions", "crd", "events", "sweep", "watch", "wire"},
		{"attempt", "dial", "feed", "inbox", "ledger", "preflight"},
		{"daemon", "draft", "machine", "part", "report", "retired"},
		{"client", "family", "feeds", "indexes", "related", "roster"},
		{"beside", "memory", "plan"},
		{"activity", "clock", "departed", "moves", "saying", "worker"},
	}
)

// TestEachFloorKnowsThoseBelowAlone holds that a package of the engine imports nothing of its own floor, nor of one
// above: what needs two packages of a floor lies above them.
func TestEachFloorKnowsThoseBelowAlone(t *testing.T) {
	floorOf := map[string]int{}
	for _, name := range commons {
		floorOf["engine/"+name] = -1
	}
	for i, floor := range floors {
		for _, name := range floor {
			floorOf["engine/"+name] = i
		}
	}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		at, known := floorOf[name]
		if kit := strings.HasPrefix(name, "engine/enginetest") || strings.HasPrefix(name, "engine/e2e"); !known {
			if strings.HasPrefix(name, "engine/") && !kit {
				t.Errorf("package %s is on no floor", name)
			}
			continue
		}
		for _, i := range p.Imports {
			ours, _ := strings.CutPrefix(i, module)
			below, known := floorOf[ours]
			if ours == "engine" || known && below >= at {
				t.Errorf("%s, on floor %d, imports %s", name, at, ours)
			}
		}
	}
}

// TestPurePackagesTalkToNobody holds that deciding is apart from doing: these packages have no
// way to the API server and no context.
func TestPurePackagesTalkToNobody(t *testing.T) {
	pure := []string{"dsl", "dsl/bookkeeping", "dsl/builtin", "dsl/crd", "dsl/form", "dsl/kinds", "dsl/logmark", "dsl/openapi", "dsl/plain", "dsl/shape", "dsl/source", "dsl/words", "engine/backoff", "engine/book", "engine/cached", "engine/cause", "engine/claim", "engine/clock", "engine/drift", "engine/filter", "engine/gone", "engine/health", "engine/index", "engine/ledger", "engine/loop", "engine/pack", "engine/plan", "engine/progress", "engine/scan", "engine/timer", "handlers/graph"}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !slices.Contains(pure, name) {
			continue
		}
		for _, i := range p.Imports {
			if strings.HasPrefix(i, "k8s.io/client-go") || i == "net/http" || i == "context" && name != "dsl" {
				t.Errorf("%s imports %s", name, i)
			}
		}
	}
}

// TestTheAPIServerIsNotLinked holds that the program stays small: a package of the API server easily
// brings all of it along, with its webhooks and tracing, and 20 MB of memory.
func TestTheAPIServerIsNotLinked(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"cmd/operator").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	for name := range strings.Lines(string(out)) {
		for _, heavy := range []string{"google.golang.org/grpc", "k8s.io/apiserver/pkg/endpoints", "k8s.io/apiserver/pkg/server", "go.opentelemetry.io/otel/exporters"} {
			if strings.HasPrefix(name, heavy) {
				t.Errorf("the operator links %s", name)
			}
		}
	}
}

type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,Imports", module+"...")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	var all []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 {
			all = append(all, p)
		}
	}
}
