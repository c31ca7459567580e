// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const (
	pausedKey  = "op.handwerk.dev/paused"
	pausedSays = "no handler runs: paused: namespace default is paused: looking"
)

// TestWhySaysWhatTheNextReconcileDoes holds, for random programs and lives, that the reasons in the answer of why are those of a reconcile
// that begins at the same moment. The namespace is paused while things happen. So the answer tells what the handlers would do, and once
// the pause is over a reconcile does it. MODEL_SEEDS=650 makes 10,000 states; MODEL_SEED=7 MODEL_SEEDS=1 plays one life again.
func TestWhySaysWhatTheNextReconcileDoes(t *testing.T) {
	first, last := seeds(t)
	compared := map[string]int{}
	for seed := first; seed < last; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { foretold(t, seed, compared) })
	}
	t.Logf("%d states, with these reasons of handlers: %v", compared[""], compared)
}

// foretold plays the life of a seed, and counts the reasons that it has compared.
func foretold(t *testing.T, seed uint64, compared map[string]int) {
	r := rand.New(rand.NewPCG(seed, 11))
	d := newMode(r)
	d.scoped, d.turns = false, r.IntN(4) == 0
	p := newProgram(r, d)
	script := newScript(r, d, p)
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
		m := &model{Cluster: c, mode: d, program: p, dice: r, lives: map[types.UID]*lifetime{}, exports: map[string]*unstructured.Unstructured{}}
		m.moment = 1
		m.begin(p)
		for _, s := range script {
			m.moment++
			m.pause(true)
			m.play(s)
			if r.IntN(6) == 0 {
				m.askRetry()
			}
			answers := m.answers(t)
			m.pause(false)
			for name, a := range answers {
				m.compare(t, name, a, compared)
			}
			if t.Failed() {
				t.Fatalf("mode: %+v\nprogram:\n%s\nstory:\n%s", d, p, strings.Join(m.story, "\n"))
			}
		}
	})
}

// pause begins or ends the pause of the namespace.
func (m *model) pause(begins bool) {
	m.Update("namespaces.v1", "", "default", func(o *unstructured.Unstructured) {
		o.SetAnnotations(nil)
		if begins {
			o.SetAnnotations(map[string]string{pausedKey: "looking"})
		}
	})
	m.Settle()
}

// askRetry has a person ask for another try of all handlers.
func (m *model) askRetry() {
	m.say("\ta retry is asked for")
	for _, name := range objects {
		if m.Get(scene.Foos, "default", name) != nil {
			m.Update(scene.Foos, "default", name, func(o *unstructured.Unstructured) {
				notes := o.GetAnnotations()
				if notes == nil {
					notes = map[string]string{}
				}
				notes["op.handwerk.dev/retry"] = "*"
				o.SetAnnotations(notes)
			})
		}
	}
	m.Settle()
}

// answers are what why says of the objects that the operator sees.
func (m *model) answers(t *testing.T) map[string]*why.Answer {
	t.Helper()
	out := map[string]*why.Answer{}
	for _, name := range objects {
		if a := m.why(t, name); a != nil && a.Unseen == "" {
			out[name] = a
		}
	}
	return out
}

// why asks about an object; nil where no process runs.
func (m *model) why(t *testing.T, name string) *why.Answer {
	t.Helper()
	if !m.runs {
		return nil
	}
	a, err := m.Process.Engine().Why(t.Context(), why.Question{Resource: "foos", Namespace: "default", Name: name, History: true})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// compare holds an answer against the reconcile that has followed it.
func (m *model) compare(t *testing.T, name string, a *why.Answer, compared map[string]int) {
	t.Helper()
	if a.Idle == nil || "no handler runs: paused: "+pausedText(a) != pausedSays || a.Without != "" {
		t.Errorf("%s is paused, and the answer says %+v %s", name, a.Idle, a.Without)
	}
	after := m.why(t, name)
	if after == nil || after.UID != a.UID {
		return
	}
	at := -1
	for i, p := range after.History {
		if p.Idle == pausedSays {
			at = i
		}
	}
	if at < 0 || at+1 >= len(after.History) {
		t.Errorf("no reconcile over %s follows the pause: %+v", name, after.History)
		return
	}
	next := after.History[at+1]
	if next.Idle != "" {
		return
	}
	compared[""]++
	for _, h := range a.Handlers {
		got, want := did(next, h.ID), foreseen(h)
		if got == "" && next.Error != "" {
			return // it broke off before
		}
		if got != want {
			t.Errorf("of handler %s of %s why says %q, and a reconcile %q: %+v", h.ID, name, want, got, next)
		}
		compared[h.Reason]++
		if h.Reason == "ToRun" && !m.mode.turns {
			return // what it does may be something for those after it
		}
	}
}

func pausedText(a *why.Answer) string {
	return strings.TrimPrefix(a.Idle.Says, "no handler runs: paused: ")
}

// foreseen is what an answer says of a handler, as far as a reconcile says it, too.
func foreseen(h why.Handler) string {
	switch h.Reason {
	case "NothingDue", "NotYet", "NoTime":
		return ""
	case "ToRun":
		return "Ran for " + h.Cause
	}
	return h.Reason + " for " + h.Cause
}

// did is what a reconcile says of a handler; empty where it had nothing to do.
func did(p why.Reconcile, handler string) string {
	if i := slices.IndexFunc(p.Attempts, func(a why.Attempt) bool { return a.Handler == handler }); i >= 0 {
		return "Ran for " + p.Attempts[i].Cause
	}
	if i := slices.IndexFunc(p.Skips, func(s why.Skip) bool { return s.Handler == handler }); i >= 0 {
		return p.Skips[i].Reason + " for " + p.Skips[i].Cause
	}
	return ""
}
