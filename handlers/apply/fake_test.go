// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/handlers/apply"
)

// cluster is children in memory. Objects are named "Kind name" or "Kind namespace/name".
type cluster struct {
	dsl.Children // what apply does not use

	mu      sync.Mutex
	objects map[string]*record
	calls   []string
	// refused has what Apply, Stale and Remove fail with, by object.
	refused map[string]error
	// slow has the objects that are not ready when they are made or changed; all has any.
	slow map[string]bool
	// immutable: no field can be changed.
	immutable bool
	// missed: the record of the children is lost.
	missed bool
	// allErr is what All and Missed fail with.
	allErr error
	clock  int64
	// running and most count calls of Apply at one time.
	running, most int
	// meeting, when set, is where calls of Apply wait for each other.
	meeting chan struct{}
}

type record struct {
	spec dsl.ChildSpec
	made map[string]any
	live *unstructured.Unstructured
	ours bool
}

func newCluster() *cluster {
	return &cluster{objects: map[string]*record{}, refused: map[string]error{}, slow: map[string]bool{}}
}

func nameOf(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

func (c *cluster) note(format string, args ...any) {
	c.calls = append(c.calls, fmt.Sprintf(format, args...))
}

// newCalls returns the calls since it was last asked.
func (c *cluster) newCalls() []string {
	out := c.calls
	c.calls = nil
	return out
}

func (c *cluster) Apply(_ context.Context, desired any, specs ...dsl.ChildSpec) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	c.running++
	c.most = max(c.most, c.running)
	c.mu.Unlock()
	if c.meeting != nil {
		c.meeting <- struct{}{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(desired.(map[string]any))}
	name := nameOf(u)
	if err := c.refused[name]; err != nil {
		c.note("refuse %s", name)
		return nil, err
	}
	known := c.objects[name]
	if known != nil && !known.ours {
		return nil, &dsl.NotOwnedError{Resource: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	}
	spec := specs[0]
	if known != nil && (known.has(desired, spec) || spec.Update == dsl.UpdateOnDelete || known.live.GetDeletionTimestamp() != nil) {
		return known.live.DeepCopy(), nil
	}
	if known != nil && (spec.Update == dsl.UpdateRecreate || c.immutable && spec.OnImmutable == dsl.RecreateChild) {
		c.note("recreate %s", name)
		now := metav1.NewTime(time.Unix(c.clock, 0))
		known.live.SetDeletionTimestamp(&now)
		return nil, dsl.Waiting(name+" to be gone, so that it can be made again", 0)
	}
	c.clock++
	generation := int64(1)
	created := metav1.NewTime(time.Unix(c.clock, 0))
	verb := "create"
	if known != nil {
		verb, generation, created = "update", known.live.GetGeneration()+1, known.live.GetCreationTimestamp()
	}
	c.note("%s %s", verb, name)
	made := runtime.DeepCopyJSON(desired.(map[string]any))
	u.SetGeneration(generation)
	u.SetCreationTimestamp(created)
	if u.GetKind() != "ConfigMap" {
		ready := !c.slow["all"] && !c.slow[name]
		u.Object["status"] = map[string]any{"ready": ready, "observedGeneration": generation}
		if ready {
			u.Object["status"].(map[string]any)["host"] = u.GetName() + ".host"
		}
	}
	c.objects[name] = &record{spec: spec, made: made, live: u, ours: true}
	return u.DeepCopy(), nil
}

func (c *cluster) Enter(_ context.Context, children ...dsl.DesiredChild) error {
	for _, one := range children {
		if !one.ByLabel() {
			return errBroken
		}
	}
	return nil
}

func (c *cluster) Missed() (bool, error) { return c.missed, c.allErr }

func (c *cluster) Stale(_ context.Context, desired any, spec dsl.ChildSpec) (bool, *unstructured.Unstructured, error) {
	name := nameOf(&unstructured.Unstructured{Object: desired.(map[string]any)})
	known := c.objects[name]
	switch {
	case known == nil:
		return false, nil, nil
	case !known.ours:
		return false, nil, &dsl.NotOwnedError{Resource: "Thing", Name: name}
	}
	return !known.has(desired, spec) && known.live.GetDeletionTimestamp() == nil, known.live.DeepCopy(), nil
}

// has reports whether an object was made from what is desired.
func (r *record) has(desired any, spec dsl.ChildSpec) bool {
	spec.Update = r.spec.Update // how a later change is made is no change
	return reflect.DeepEqual(r.made, desired) && reflect.DeepEqual(r.spec, spec)
}

func (c *cluster) Live(ctx context.Context, desired any, spec dsl.ChildSpec) (*unstructured.Unstructured, error) {
	_, live, err := c.Stale(ctx, desired, spec)
	if errors.Is(err, dsl.ErrNotOwned) {
		return nil, nil
	}
	return live, err
}

func (c *cluster) All() ([]dsl.ChildObject, error) {
	if c.allErr != nil {
		return nil, c.allErr
	}
	var out []dsl.ChildObject
	for _, r := range c.objects {
		if r.ours && r.spec.Ownership != dsl.Unowned {
			out = append(out, dsl.ChildObject{ChildSpec: r.spec, Object: r.live.DeepCopy()})
		}
	}
	slices.SortFunc(out, func(a, b dsl.ChildObject) int {
		text := func(o dsl.ChildObject) string {
			return strings.Join([]string{o.Handler, o.Name, o.Key, o.Object.GetName()}, "\x00")
		}
		return strings.Compare(text(a), text(b))
	})
	return out, nil
}

func (c *cluster) Remove(_ context.Context, child dsl.ChildObject) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := nameOf(child.Object)
	if err := c.refused[name]; err != nil {
		c.note("refuse %s", name)
		return err
	}
	known := c.objects[name]
	if known == nil {
		return nil
	}
	if child.OnDelete == dsl.OrphanChild {
		c.note("orphan %s", name)
		known.ours = false
		return nil
	}
	if c.note("delete %s", name); child.DeleteOrder == dsl.DeleteReverse {
		c.calls[len(c.calls)-1] += " in the foreground"
	}
	now := metav1.NewTime(time.Unix(c.clock, 0))
	known.live.SetDeletionTimestamp(&now)
	return nil
}

// collect makes what is being deleted go, and everything that is there ready.
func (c *cluster) collect() {
	for name, r := range c.objects {
		if r.live.GetDeletionTimestamp() != nil {
			delete(c.objects, name)
		}
		c.settle(name)
	}
}

// settle makes an object ready.
func (c *cluster) settle(name string) {
	if r := c.objects[name]; r != nil && r.live.Object["status"] != nil {
		r.live.Object["status"] = map[string]any{
			"ready": true, "host": r.live.GetName() + ".host", "observedGeneration": r.live.GetGeneration(),
		}
	}
}

// names returns the objects that are there and were made for the owner, sorted.
func (c *cluster) names() []string {
	var out []string
	for name, r := range c.objects {
		if r.ours {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// events are Events in memory.
type events []string

func (e *events) Event(kind dsl.EventType, reason, note string, args ...any) {
	*e = append(*e, fmt.Sprintf("%s %s: %s", kind, reason, fmt.Sprintf(note, args...)))
}

func (e *events) EventAbout(any, dsl.EventType, string, string, ...any) error {
	return errors.ErrUnsupported
}

// decoded reads YAML as a configuration has it.
func decoded(t testing.TB, text string) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	out, err := plain.Value(tree)
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := out.(map[string]any)
	return whole
}

var compiler = sync.OnceValues(expr.New)

func build(t testing.TB, text string, b actions.Build) (actions.Built, error) {
	t.Helper()
	action := apply.Action(compiler)
	config, root := action.Config(), form.Node(decoded(t, text))
	d := form.NewDecoder(root)
	d.Value("apply", root, config)
	if b.ID == "" {
		b.ID = "h"
	}
	built, err := action.Build(b, config)
	if len(d.Faults) == 0 {
		return built, err
	}
	var faults []error
	for _, f := range d.Faults {
		faults = append(faults, &shape.Misfit{Path: f.At.Steps(), Message: f.Message})
	}
	return actions.Built{}, errors.Join(append(faults, err)...)
}

// world is one object with its children and the handler that keeps them.
type world struct {
	*cluster
	t      testing.TB
	built  actions.Built
	self   map[string]any
	more   []shape.NamedChild
	now    time.Time
	params dsl.Params
	// What the last run reported.
	events events
	patch  *dsl.Patch
}

// start builds the handler and makes an object ns/me with the spec.
func start(t testing.TB, config, spec string) *world {
	t.Helper()
	w := &world{cluster: newCluster(), t: t}
	w.configure(config)
	w.spec(spec)
	return w
}

func (w *world) configure(config string) {
	w.t.Helper()
	built, err := build(w.t, config, actions.Build{Params: w.params})
	if err != nil {
		w.t.Fatal(err)
	}
	w.built = built
}

func (w *world) spec(text string) {
	w.t.Helper()
	w.self = map[string]any{
		"apiVersion": "example.com/v1", "kind": "Foo",
		"metadata": map[string]any{"name": "me", "namespace": "ns"}, "spec": decoded(w.t, text),
	}
}

func (w *world) run(cause dsl.Cause) error {
	return w.runIn(w.t.Context(), cause)
}

func (w *world) runIn(ctx context.Context, cause dsl.Cause) error {
	w.events, w.patch = nil, dsl.NewPatch()
	return w.built.Func(ctx, w.request(cause, w.cluster))
}

// request is what the handler gets.
func (w *world) request(cause dsl.Cause, children dsl.Children) *dsl.Request {
	return &dsl.Request{
		Subject: dsl.Subject{
			Object: &unstructured.Unstructured{Object: w.self}, Cause: cause, Children: children,
			Made: append(w.built.Children, w.more...), Now: w.now,
		},
		Patch: w.patch, Events: &w.events, Children: children,
	}
}

// said returns the condition of the last run.
func (w *world) said() string {
	if len(w.patch.Offered) == 0 {
		return ""
	}
	return w.saidAll()[0]
}

// saidAll are the conditions that the handler offered.
func (w *world) saidAll() (out []string) {
	for _, c := range w.patch.Offered {
		out = append(out, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return out
}

var errBroken = errors.New("broken")
