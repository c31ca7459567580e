// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// ringMost is how many calls a test makes at most in a ring that the breaker does not stop: virtual time stands still while handlers run.
const ringMost = 8_000

// rings counts the calls of a ring's handlers, and ends the ring after most calls.
type rings struct {
	calls, most int64
}

// call counts a call, and returns the number of calls so far.
func (x *rings) call() int64 { return atomic.AddInt64(&x.calls, 1) }

// over returns a handler that sets status.n one above the number that it reads.
func (x *rings) over(read func(r *dsl.Request) (int64, error)) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		n, err := read(r)
		if calls := x.call(); err != nil || calls > x.most {
			return err
		}
		r.Patch.SetStatus("n", n+1)
		return nil
	}
}

// number returns status.n of an object, zero where it is not set.
func number(o *unstructured.Unstructured) int64 {
	n, _ := scene.ValueAt(o, "status.n").(int64)
	return n
}

// ofPeer reads the number of the object that a relation selects.
func ofPeer(name string) func(*dsl.Request) (int64, error) {
	return func(r *dsl.Request) (int64, error) {
		found, err := r.Related.Get(name)
		if err != nil || len(found) == 0 {
			return 0, err
		}
		return number(found[0]), nil
	}
}

// ofChild reads the number of the only child.
func ofChild(r *dsl.Request) (int64, error) {
	all, err := r.Children.List(scene.Bars)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return number(all[0]), nil
}

// peer is a relation to the object of a resource that spec.ref names.
func peer(resource string) dsl.Relation {
	name, err := dsl.ParseResourceName(resource)
	if err != nil {
		panic(err)
	}
	return dsl.Relation{Name: "peer", Resource: name, One: true, Select: scene.RelatedByName}
}

// declareBars declares the resource bars beside foos, which must be declared first.
func declareBars(s *scene.Stage, declare func(bar *dsl.Resource)) {
	s.T.Helper()
	s.Serve(kit.Resource{Name: scene.Bars, Kind: "Bar"})
	s.Operator.Resource(scene.Bars, declare)
}

// childOf creates a Bar that web controls, with a spec.ref that names web.
func childOf(s *scene.Stage, owner *unstructured.Unstructured, name string) {
	s.T.Helper()
	o := scene.OwnedObject(owner, "example.org/v1", "Bar", name)
	o["spec"] = map[string]any{"ref": owner.GetName()}
	s.Create(o)
}

// TestABreakerSeesARing holds that the breaker stops objects which follow each other, and that the Event names all of them with
// their handlers.
func TestABreakerSeesARing(t *testing.T) {
	x := &rings{}
	pair := func(s *scene.Stage) { s.Create(scene.FooWithRef("a", "b") + "\n---\n" + scene.FooWithRef("b", "a")) }
	tests := map[string]struct {
		operator func(s *scene.Stage, foo *dsl.Resource)
		play     func(s *scene.Stage)
		// named must be in the Event of one of the objects.
		named []string
	}{
		"two objects of a resource that are related": {func(_ *scene.Stage, foo *dsl.Resource) {
			foo.Relates(peer(scene.Foos))
			foo.OnReconcile("follow", x.over(ofPeer("peer")))
		}, pair, []string{scene.Foos + " default/a (follow)", scene.Foos + " default/b (follow)"}},
		"two objects whose handlers fail at first": {func(_ *scene.Stage, foo *dsl.Resource) {
			foo.Relates(peer(scene.Foos))
			follow := x.over(ofPeer("peer"))
			foo.OnReconcile("follow", func(ctx context.Context, r *dsl.Request) error {
				if r.Attempt == 1 {
					return dsl.Temporary(scene.ErrAgain, 0)
				}
				return follow(ctx, r)
			})
		}, pair, []string{scene.Foos + " default/a (follow)", scene.Foos + " default/b (follow)"}},
		"two objects whose handlers ask to run at once, and write then": {func(_ *scene.Stage, foo *dsl.Resource) {
			foo.Relates(peer(scene.Foos))
			follow := x.over(ofPeer("peer"))
			foo.OnReconcile("follow", func(ctx context.Context, r *dsl.Request) error {
				if r.Cause != dsl.Again {
					r.RunAgain(time.Millisecond)
					return nil
				}
				return follow(ctx, r)
			})
		}, pair, []string{scene.Foos + " default/a (follow)"}},
		"two objects, and each pass sends two requests": {func(_ *scene.Stage, foo *dsl.Resource) {
			foo.Relates(peer(scene.Foos))
			foo.OnReconcile("follow", func(_ context.Context, r *dsl.Request) error {
				n, err := ofPeer("peer")(r)
				if calls := x.call(); err == nil && calls < x.most {
					r.Patch.SetStatus("n", n+1)
					r.Patch.Annotate("n", strconv.FormatInt(n, 10))
				}
				return err
			})
		}, pair, []string{scene.Foos + " default/a (follow)", scene.Foos + " default/b (follow)"}},
		"ten objects, each related to the next": {func(_ *scene.Stage, foo *dsl.Resource) {
			foo.Relates(peer(scene.Foos))
			foo.OnReconcile("follow", x.over(ofPeer("peer")))
		}, func(s *scene.Stage) {
			for i := range 10 {
				s.Create(scene.FooWithRef(fmt.Sprint("o", i), fmt.Sprint("o", (i+1)%10)))
			}
		}, []string{" (follow), 2 more; "}},
		"two objects of an index": {func(s *scene.Stage, foo *dsl.Resource) {
			s.Operator.Index("numbers", scene.Foos, func(o *unstructured.Unstructured) ([]dsl.Entry, error) {
				return []dsl.Entry{{Key: o.GetName(), Value: number(o)}}, nil
			})
			foo.OnReconcile("follow", x.over(func(r *dsl.Request) (int64, error) {
				numbers, err := dsl.Index[string, int64](r, "numbers")
				if err != nil {
					return 0, err
				}
				ref, _ := scene.ValueAt(r.Object, "spec.ref").(string)
				found, err := numbers.Get(ref)
				return slices.Max(append(found, 0)), err
			}))
		}, pair, []string{scene.Foos + " default/a (follow)", scene.Foos + " default/b (follow)"}},
		"a parent and its child, both handled by the operator": {func(s *scene.Stage, foo *dsl.Resource) {
			foo.Owns(scene.Bars)
			foo.OnReconcile("count", x.over(ofChild))
			declareBars(s, func(bar *dsl.Resource) {
				bar.Relates(peer(scene.Foos))
				bar.OnReconcile("follow", x.over(ofPeer("peer")))
			})
		}, func(s *scene.Stage) { childOf(s, s.Create(scene.Web), "one") }, []string{scene.Foos + " default/web (count)", scene.Bars + " default/one (follow)"}},
		"a parent that writes the field which its child's handler reads": {func(s *scene.Stage, foo *dsl.Resource) {
			foo.Owns(scene.Bars)
			foo.OnReconcile("write", func(ctx context.Context, r *dsl.Request) error {
				n, err := ofChild(r)
				if calls := x.call(); err != nil || calls > x.most {
					return err
				}
				_, err = r.Children.Apply(ctx, map[string]any{
					"apiVersion": "example.org/v1", "kind": "Bar", "metadata": map[string]any{"name": "one"}, "spec": map[string]any{"n": n},
				})
				return err
			})
			declareBars(s, func(bar *dsl.Resource) {
				bar.OnReconcile("answer", x.over(func(r *dsl.Request) (int64, error) {
					n, _ := scene.ValueAt(r.Object, "spec.n").(int64)
					return n, nil
				}))
			})
		}, func(s *scene.Stage) { s.Create(scene.Web) }, []string{scene.Foos + " default/web (write)", scene.Bars + " default/one (answer)"}},
		"a parent that makes another child when the last one is ready": {func(s *scene.Stage, foo *dsl.Resource) {
			foo.Owns(scene.Bars)
			foo.OnReconcile("make", func(ctx context.Context, r *dsl.Request) error {
				all, err := r.Children.List(scene.Bars)
				busy := slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return number(o) == 0 })
				if calls := x.call(); err != nil || busy || calls > x.most/4 {
					return err
				}
				_, err = r.Children.Apply(ctx, map[string]any{
					"apiVersion": "example.org/v1", "kind": "Bar", "metadata": map[string]any{"name": fmt.Sprint("b", len(all))},
				})
				r.Patch.SetStatus("n", int64(len(all)))
				return err
			})
			declareBars(s, func(bar *dsl.Resource) {
				bar.OnCreate("work", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("n", int64(1))
					return nil
				})
			})
		}, func(s *scene.Stage) { s.Create(scene.Web) }, []string{scene.Foos + " default/web (make)"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			*x = rings{most: ringMost}
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				s := scene.NewStage(t, c)
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { tt.operator(s, foo) })
				s.Launch()
				tt.play(s)
				s.Advance(time.Minute)
				if x.calls > ringMost/2 {
					t.Errorf("%d calls in a minute", x.calls)
				}
				for _, want := range tt.named {
					if !slices.ContainsFunc(s.LoopEvents(), func(e kit.Event) bool { return strings.Contains(e.Note, want) }) {
						t.Errorf("no Event names %s: %+v", want, s.LoopEvents())
					}
				}
			})
		})
	}
}

// TestARollOutIsNoRing holds that an object may follow many others as fast as they change: somebody else's writes have a pace of
// their own, and so have children whose handlers do not follow the object.
func TestARollOutIsNoRing(t *testing.T) {
	const n = 350 // more than the breaker takes for progress
	name := func(i int64) string { return fmt.Sprintf("b-%03d", i) }
	var ready int64 // children become ready in the order of their names
	count := func(r *dsl.Request) error {
		for ready < n {
			o, err := r.Children.Get(scene.Bars, name(ready))
			if err != nil || o == nil || scene.ValueAt(o, "status.ready") != true {
				return err
			}
			ready++
		}
		return nil
	}
	waits := func(_ context.Context, r *dsl.Request) error {
		err := count(r)
		r.Patch.SetStatus("n", ready)
		if err == nil && ready < n {
			return dsl.Waiting("children", time.Hour)
		}
		return err
	}
	makes := func(s *scene.Stage) {
		owner := s.Create(scene.Web)
		for i := range int64(n) {
			childOf(s, owner, name(i))
		}
	}
	makeReady := func(s *scene.Stage, i int64) {
		s.Update(scene.Bars, "default", name(i), func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"ready": true} })
	}
	tests := map[string]struct {
		operator func(s *scene.Stage, foo *dsl.Resource)
		play     func(s *scene.Stage)
	}{
		"a handler waits for children that somebody else makes ready": {func(_ *scene.Stage, foo *dsl.Resource) {
			foo.Owns(scene.Bars)
			foo.OnReconcile("wait", waits)
		}, func(s *scene.Stage) {
			s.Serve(kit.Resource{Name: scene.Bars, Kind: "Bar"})
			makes(s)
			s.Launch()
			for i := range int64(n) {
				makeReady(s, i)
				s.Advance(10 * time.Millisecond)
			}
		}},
		"a handler makes one child after another, which somebody else makes ready": {func(_ *scene.Stage, foo *dsl.Resource) {
			foo.Owns(scene.Bars)
			foo.OnReconcile("look", func(_ context.Context, r *dsl.Request) error {
				err := count(r)
				r.Patch.SetStatus("n", ready)
				return err
			})
			foo.OnReconcile("roll", func(ctx context.Context, r *dsl.Request) error {
				if err := count(r); err != nil || ready == n {
					return err
				}
				if _, err := r.Children.Apply(ctx, map[string]any{"apiVersion": "example.org/v1", "kind": "Bar", "metadata": map[string]any{"name": name(ready)}}); err != nil {
					return err
				}
				return dsl.Waiting("children", time.Hour)
			})
		}, func(s *scene.Stage) {
			s.Serve(kit.Resource{Name: scene.Bars, Kind: "Bar"})
			s.Launch()
			s.Create(scene.Web)
			for i := range int64(n) {
				s.Settle()
				makeReady(s, i)
				s.Advance(10 * time.Millisecond)
			}
		}},
		"children of the operator's own become ready one after another": {func(s *scene.Stage, foo *dsl.Resource) {
			foo.Owns(scene.Bars)
			foo.OnReconcile("wait", waits)
			declareBars(s, func(bar *dsl.Resource) {
				bar.Workers = 1
				bar.OnCreate("work", func(_ context.Context, r *dsl.Request) error {
					<-time.After(10 * time.Millisecond)
					r.Patch.SetStatus("ready", true)
					return nil
				})
			})
		}, func(s *scene.Stage) {
			s.Launch()
			makes(s)
		}},
		"children that the object has made, which are the operator's own": {func(s *scene.Stage, foo *dsl.Resource) {
			foo.Owns(scene.Bars)
			foo.OnCreate("make", func(ctx context.Context, r *dsl.Request) error {
				for i := range int64(n) {
					if _, err := r.Children.Apply(ctx, map[string]any{"apiVersion": "example.org/v1", "kind": "Bar", "metadata": map[string]any{"name": name(i)}}); err != nil {
						return err
					}
				}
				return nil
			})
			foo.OnReconcile("wait", waits)
			declareBars(s, func(bar *dsl.Resource) {
				bar.Workers = 1
				bar.OnCreate("work", func(_ context.Context, r *dsl.Request) error {
					<-time.After(10 * time.Millisecond)
					r.Patch.SetStatus("ready", true)
					return nil
				})
			})
		}, func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ready = 0
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				s := scene.NewStage(t, c)
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { tt.operator(s, foo) })
				tt.play(s)
				s.Advance(10 * time.Second)
				s.WantField("status.n", int64(n))
				if got := s.LoopEvents(); len(got) > 0 {
					t.Errorf("it counts as a loop: %+v", got)
				}
			})
		})
	}
}

// TestTwoOperatorsThatUndoEachOtherAreALoop holds that the breaker counts a reconcile that writes the same as one before it, also
// where another operator undoes these writes.
func TestTwoOperatorsThatUndoEachOtherAreALoop(t *testing.T) {
	tests := map[string]struct {
		spec   dsl.ChildSpec
		theirs func(o *unstructured.Unstructured)
	}{
		"a value of the template":                                {dsl.ChildSpec{}, func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"v": "theirs"} }},
		"a field that the template lacks, where drift is strict": {dsl.ChildSpec{Drift: dsl.DriftStrict}, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"theirs": "x"}) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.ConfigMaps)
				foo.OnReconcile("keep", j.Note("keep", func(ctx context.Context, r *dsl.Request) error {
					_, err := r.Children.Apply(ctx, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}, "data": map[string]any{"v": "ours"}}, tt.spec)
					return err
				}))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				for range 100 {
					s.Update(scene.ConfigMaps, "default", "c", tt.theirs)
					s.Advance(10 * time.Millisecond)
				}
				if n := len(s.Take()); n < 30 || n > 60 || len(s.LoopEvents()) != 1 {
					s.T.Errorf("%d calls, Events %+v", n, s.LoopEvents())
				}
			}})
		})
	}
}
