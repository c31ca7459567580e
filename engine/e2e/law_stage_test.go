// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// works is a resource without a meaning: its spec and status hold anything.
const (
	works      = "works.v1.e2e.example.com"
	configMaps = "configmaps.v1"
)

// stage is a namespace in which an operator works, with rights of its own and behind a proxy.
type stage struct {
	kit.Journal
	ns    string
	user  *cluster.User
	proxy *cluster.Proxy
	works *cluster.Objects
	maps  *cluster.Objects
	// begun are the operators that were begun on it.
	begun []*cluster.Running
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{ns: plane.Namespace(t), user: plane.User("law")}
	s.user.Allow(t,
		cluster.Rule("e2e.example.com", "works,works/status", "*"),
		cluster.Rule("", "configmaps,services,events", "*"),
		cluster.Rule("apps", "deployments", "*"),
		cluster.Rule("events.k8s.io", "events", "*"),
		cluster.Rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "list", "watch"),
	)
	s.proxy = cluster.NewProxy(t, s.user.Config())
	s.works, s.maps = plane.Objects(works, s.ns), plane.Objects(configMaps, s.ns)
	return s
}

// operator is an operator named law of works in the stage's namespace.
func (s *stage) operator(define func(*dsl.Resource)) *dsl.Operator {
	op := dsl.New("law")
	op.Scope.Namespaces = []string{s.ns}
	op.Resource(works, define)
	return op
}

// begin runs an operator in this process until it is ready.
func (s *stage) begin(t *testing.T, op *dsl.Operator) *cluster.Running {
	t.Helper()
	r := cluster.Run(t, op, settingsOf(s))
	s.begun = append(s.begun, r)
	r.AwaitReady(t)
	return r
}

func settingsOf(s *stage) engine.Settings { return engine.Settings{Config: s.proxy.Config()} }

// awaitCheck waits until a check of the operator's readiness has the state and says the words.
func awaitCheck(t *testing.T, running *cluster.Running, name string, state ops.State, words string) (found ops.Check) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%s to be %v with %q", name, state, words), func() bool {
		for _, c := range running.Engine.Ready() {
			if c.Name == name && c.State == state && strings.Contains(c.Message, words) {
				found = c
				return true
			}
		}
		return false
	})
	return found
}

// play is begin for an operator of works alone.
func (s *stage) play(t *testing.T, define func(*dsl.Resource)) *cluster.Running {
	t.Helper()
	return s.begin(t, s.operator(define))
}

// quiesce returns when the operator has come past what happened before: twice a new object went all
// the way through it, up to this handler, and then no worker was at work on
// any: what was begun before is done, too.
func (s *stage) quiesce(t *testing.T, handler string) {
	t.Helper()
	for range 2 {
		name := "marker-" + rand.String(8)
		s.works.Create(t, work(name, "marker"))
		s.Await(t, 1, handler, name)
		s.works.Delete(t, name)
		s.works.AwaitGone(t, name)
	}
	for _, running := range s.begun {
		waitFor(t, "the operator to have no pass under way", func() bool { return running.Idle(t, works) })
	}
}

// writes are the operator's requests since the mark for one name and for names that begin with it
// and a dash.
func (s *stage) writes(t *testing.T, mark cluster.Mark, name string) []string {
	t.Helper()
	var out []string
	for _, w := range plane.Writes(t, s.user.Name, mark) {
		if w.Name == name || strings.HasPrefix(w.Name, name+"-") {
			out = append(out, strings.ReplaceAll(w.String(), s.ns+"/", ""))
		}
	}
	return out
}

// said are a handler's calls for one object as text: handler, cause and spec.value. An empty handler
// stands for all.
func (s *stage) said(handler, name string) []string {
	var out []string
	for _, c := range s.Of(handler, name) {
		out = append(out, textOf(c))
	}
	return out
}

// textOf is a call as text.
func textOf(c kit.Call) string {
	return fmt.Sprintf("%s %s %s", c.Handler, c.Cause, valueOf(c))
}

// valueOf is the spec.value that a call saw.
func valueOf(c kit.Call) string { return spec(c.Object, "value") }

// work is a Work with a spec.value.
func work(name, value string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "e2e.example.com/v1", "kind": "Work",
		"spec": map[string]any{"value": value, "other": "o"},
	}}
	o.SetName(name)
	return o
}

// configMap is a desired child with one key.
func configMap(name, value string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name},
		"data":     map[string]any{"value": value},
	}
}

// settled reports whether the operator has stored on the object that every handler has handled it.
func settled(o *unstructured.Unstructured) bool {
	var book struct {
		Handlers map[string]struct {
			Seen string
			Try  map[string]any
		}
	}
	if err := json.Unmarshal([]byte(o.GetAnnotations()["law.handwerk.dev/state"]), &book); err != nil {
		return false
	}
	for _, h := range book.Handlers {
		if h.Seen == "" || h.Try != nil && h.Try["done"] != true {
			return false
		}
	}
	return len(book.Handlers) > 0
}

// spec is a string in an object's spec.
func spec(o *unstructured.Unstructured, key string) string {
	s, _, _ := unstructured.NestedString(o.Object, "spec", key)
	return s
}

// status is a string in an object's status.
func status(o *unstructured.Unstructured, key string) string {
	s, _, _ := unstructured.NestedString(o.Object, "status", key)
	return s
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// waitFor asks again and again until met, for what reports no change.
func waitFor(t *testing.T, what string, met func() bool) {
	t.Helper()
	eventually(t, what, func() (bool, string) { return met(), "it is not so" })
}
