// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// twin is a cluster in memory with the objects of another one. It is used in a bubble of testing/synctest, whose time is
// virtual.
type twin struct {
	server   *server.Server
	recorder *recorder
	// namespace is the operator's.
	namespace string
	journal   *journal
	workloads Workloads
}

// newTwin makes a twin and stores the objects. The server takes ownership of them. It returns a warning for each object that it cannot store.
func newTwin(objects []*unstructured.Unstructured, namespace string, w Workloads) (t *twin, warnings []string) {
	t = &twin{recorder: newRecorder(), namespace: namespace, journal: newJournal(), workloads: w}
	settings := complete.Settings()
	settings.Authorize, settings.Rarer, settings.Unfurnished = false, true, true
	settings.OwnWrites = t.recorder.own
	t.server = server.New(settings)
	t.recorder.server, t.recorder.admin = t.server, t.server.Admin()
	names := make([]string, len(objects)) // the server changes the objects
	for i, o := range objects {
		names[i] = nameOf(o.GetKind(), o.GetNamespace(), o.GetName())
	}
	for i, err := range t.server.LoadAll(objects) {
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s is left out: %v", names[i], err))
		}
	}
	advance(settling) // the controllers of the lives of objects have something to do
	return t, warnings
}

// makeNamespace makes the operator's namespace if the cluster has none: the operator's Pod would be in it.
func (t *twin) makeNamespace() {
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(t.namespace)
	if t.recorder.read(place{schema.GroupResource{Resource: "namespaces"}, "", t.namespace}) == nil {
		t.server.LoadAll([]*unstructured.Unstructured{namespace}) // its name was checked with the operator
	}
}

// settling is the time in which the server's own controllers notice what was loaded.
const settling = 10 * time.Second

// nameOf names an object, as in Deployment shop/web.
func nameOf(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// advance lets virtual time pass, and returns when nothing is left to do then.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// config returns the config of the operator's clients.
func (t *twin) config(op *dsl.Operator) *rest.Config {
	return &rest.Config{
		Host: "http://twin", Transport: t.server.Client(t.recorder.before, t.recorder.after), QPS: -1, UserAgent: op.Name,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
}

// Outcome says how an operator has run in the twin.
type outcome struct {
	rested  bool
	after   time.Duration
	failing []Failure
	// refused is the error with which operator run would not install the CRDs; nil for none.
	refused error
}

// run runs an operator in the twin until it rests, at most for a time.
func (t *twin) run(op *dsl.Operator, limit time.Duration) (out outcome, err error) {
	prepare(op)
	t.journal.watch(op)
	ctx, cancel := context.WithCancel(context.Background())
	defer t.live(ctx)()
	config := t.config(op)
	set := crd.Settings{Log: logr.Discard(), TakeOver: true}
	if err := crd.Install(ctx, op, config, set); err != nil {
		out.refused = err
		set.AllowBreaking = true
		if err := crd.Install(ctx, op, config, set); err != nil {
			cancel()
			return out, err
		}
	}
	e, err := engine.New(op, engine.Settings{Config: config, Namespace: t.namespace, Identity: "plan", PodName: "plan", Webhooks: engine.Webhooks{Off: true}})
	if err != nil {
		cancel()
		return out, err
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	out.rested, out.after = t.rest(limit)
	out.failing = failing(e.Ready())
	t.recorder.stop() // on its way out, the operator writes nothing that counts
	cancel()
	return out, <-ended
}

// live lets workloads live as the twin is told to. The returned function waits for their end after the context's.
func (t *twin) live(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	switch t.workloads {
	case WorkloadsAlive:
		config := &rest.Config{Host: "http://twin", Transport: t.server.Admin(), QPS: -1, UserAgent: "workloads", ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
		running.Go(func() { _ = workloads.Run(ctx, config, workloads.Settings{AllKinds: true}) }) // it fails only for an invalid config
	case WorkloadsRollout:
		r := newRollout(t.server, t.recorder.read)
		t.recorder.wrote = r.changed
		running.Go(func() { r.run(ctx) })
	}
	return running.Wait
}

// The operator rests when it has written nothing and no handler has begun for quiet. The twin is looked at each step.
const (
	quiet = 2 * time.Minute
	step  = 5 * time.Second
)

// rest lets the operator go on until it rests, at most for a time.
func (t *twin) rest(limit time.Duration) (rested bool, after time.Duration) {
	busy := time.Duration(0)
	for before := -1; after < limit; {
		if after-busy >= quiet {
			return true, busy
		}
		d := min(step, limit-after)
		advance(d)
		after += d
		if now := t.activity(); now != before {
			before, busy = now, after
		}
	}
	return after-busy >= min(quiet, limit), busy
}

func (t *twin) activity() int { return t.recorder.count() + t.journal.count() }

// failing returns the checks that fail, but for what follows from functions that were not called.
func failing(checks []ops.Check) (out []Failure) {
	for _, c := range checks {
		about, _, _ := strings.Cut(c.Name, "/")
		if c.State == ops.Pass || about == "failing" && !c.OfObject {
			continue // its objects have checks of their own
		}
		parts := strings.Split(lasts.ReplaceAllString(c.Message, ""), "; ")
		uncalled := slices.ContainsFunc(parts, func(part string) bool { return isUnknown(part) })
		parts = slices.DeleteFunc(parts, func(part string) bool {
			return isUnknown(part) || uncalled && strings.Contains(part, " waits for handler ")
		})
		if len(parts) > 0 {
			out = append(out, Failure{strings.TrimPrefix(c.Name, "failing/"), strings.Join(parts, "; ")})
		}
	}
	return out
}

// lasts is how long a handler has been failing. In virtual time that says nothing.
var lasts = regexp.MustCompile(`^for [0-9a-z.]+: `)

// prepare makes an operator fit for a twin: one process works alone, at once, and leaves no history.
func prepare(op *dsl.Operator) {
	op.Settings.LeaderElection = dsl.LeaderElection{Namespace: op.Settings.LeaderElection.Namespace}
	op.Settings.GracePeriod = time.Second
	op.Settings.History = new(int64)
	op.Settings.QPS = 0
	op.Settings.Limits = unlimited
	for _, r := range op.Resources() {
		r.Limits = nil
	}
}
