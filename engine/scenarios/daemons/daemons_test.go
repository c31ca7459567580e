// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemons_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// vigil notes what daemons do, and fails the test when two run at once for one name.
type vigil struct {
	t       *testing.T
	mu      sync.Mutex
	lines   []string
	running map[string]int
}

func newVigil(t *testing.T) *vigil { return &vigil{t: t, running: map[string]int{}} }

func (v *vigil) note(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lines = append(v.lines, fmt.Sprintf(format, args...))
}

// enter counts a run of a daemon; what it returns counts its end.
func (v *vigil) enter(r *dsl.DaemonRequest) (leave func()) {
	name := r.Object.GetNamespace() + "/" + r.Object.GetName()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.running[name]++; v.running[name] > 1 {
		v.t.Errorf("two daemons run at once for %s", name)
	}
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.running[name]--
	}
}

// clear forgets what was noted.
func (v *vigil) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lines = nil
}

// runs is how many daemons run.
func (v *vigil) runs() (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.running {
		n += one
	}
	return n
}

// watches is a daemon that notes each change that it sees, and why it stops. Last is what it does then.
func (v *vigil) watches(last ...func(ctx context.Context, r *dsl.DaemonRequest)) dsl.DaemonFunc {
	return func(ctx context.Context, r *dsl.DaemonRequest) error {
		defer v.enter(r)()
		v.note("begins: %d", scene.SizeOf(r.Object))
		for {
			select {
			case <-r.Changes():
				v.note("sees: %d", scene.SizeOf(r.Current()))
			case <-ctx.Done():
				v.note("stops: %v", context.Cause(ctx))
				for _, do := range last {
					do(ctx, r)
				}
				return ctx.Err()
			}
		}
	}
}

// want settles, and compares what was noted since the last want.
func (v *vigil) want(lines ...string) {
	v.t.Helper()
	synctest.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	if diff := cmp.Diff(lines, v.lines, cmpopts.EquateEmpty()); diff != "" {
		v.t.Errorf("daemons (-want +got):\n%s", diff)
	}
	v.lines = nil
}

// playDaemon plays with one daemon, watch, of Foos, and what else there is.
func playDaemon(t *testing.T, operator func(foo *dsl.Resource, v *vigil), play func(s *scene.Stage, v *vigil)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s, v := scene.NewStage(t, c), newVigil(t)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { operator(foo, v) })
		play(s, v)
		if s.Process != nil {
			_ = s.Process.Stop()
			s.Advance(2 * time.Hour) // some take their time
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		for name, n := range v.running {
			if n != 0 {
				t.Errorf("%d daemons of %s still run when the process has ended", n, name)
			}
		}
	})
}

// watching is an operator with nothing but the daemon watch.
func watching(options ...dsl.Option) func(*dsl.Resource, *vigil) {
	return func(foo *dsl.Resource, v *vigil) { foo.Daemon("watch", v.watches(), options...) }
}

// red sees red objects alone.
func red(s *dsl.Subject) (bool, error) {
	color, _, err := unstructured.NestedString(s.Object.Object, "spec", "color")
	return color == "red", err
}

// TestADaemonStartsAndStopsWithItsObject holds when a daemon begins, what it sees, and when it stops.
func TestADaemonStartsAndStopsWithItsObject(t *testing.T) {
	tests := map[string]struct {
		operator func(*dsl.Resource, *vigil)
		play     func(s *scene.Stage, v *vigil)
	}{
		"it begins with the object and sees its changes, and those alone": {watching(), func(s *scene.Stage, v *vigil) {
			s.Begin()
			v.want("begins: 1")
			s.Resize(2)
			v.want("sees: 2")
			s.Advance(time.Hour)
			v.want()
			s.Wrote()
		}},
		"objects that are there when the process starts have one": {watching(), func(s *scene.Stage, v *vigil) {
			s.Create(scene.Web)
			s.Launch()
			v.want("begins: 1")
		}},
		"changes that it has not looked at are one": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", func(ctx context.Context, r *dsl.DaemonRequest) error {
				for {
					select {
					case <-time.After(time.Minute):
					case <-ctx.Done():
						return nil
					}
					select {
					case <-r.Changes():
						v.note("sees: %d", scene.SizeOf(r.Current()))
					default:
						v.note("sees nothing")
					}
				}
			})
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Resize(2)
			s.Resize(3)
			s.Advance(time.Minute)
			v.want("sees: 3")
			s.Advance(time.Minute)
			v.want("sees nothing")
		}},
		"it stops with the filters, and begins again with them": {watching(dsl.When(red)), func(s *scene.Stage, v *vigil) {
			s.Begin()
			v.want("begins: 1")
			s.Set("blue", "spec", "color")
			v.want("sees: 1", "stops: its filters do not match")
			s.Resize(2)
			s.Set("red", "spec", "color")
			v.want("begins: 2")
		}},
		"labels are such filters": {watching(dsl.Label("watched", "yes")), func(s *scene.Stage, v *vigil) {
			s.Begin()
			v.want()
			s.Set("yes", "metadata", "labels", "watched")
			v.want("begins: 1")
			s.Set("no", "metadata", "labels", "watched")
			v.want("sees: 1", "stops: its filters do not match")
		}},
		"a filter that cannot be asked changes nothing": {watching(dsl.When(func(s *dsl.Subject) (bool, error) {
			if scene.SizeOf(s.Object) == 2 {
				return false, scene.ErrAgain
			}
			return true, nil
		})), func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Resize(2)
			v.want("begins: 1", "sees: 2")
			s.Resize(3)
			v.want("sees: 3")
		}},
		"the shutdown stops it": {watching(), func(s *scene.Stage, v *vigil) {
			s.Begin()
			if err := s.Process.Stop(); err != nil {
				s.T.Error(err)
			}
			v.want("begins: 1", "stops: the operator stops")
		}},
		"a restart of the process starts it again": {watching(), func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Process.Restart()
			v.want("begins: 1", "stops: the operator stops", "begins: 1")
		}},
		"one that leaves the operator's selector is gone": {func(foo *dsl.Resource, v *vigil) {
			foo.LabelSelector = "team=a"
			watching()(foo, v)
		}, func(s *scene.Stage, v *vigil) {
			s.Launch()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {team: a}}, spec: {size: 1}}`)
			v.want("begins: 1")
			s.Set("b", "metadata", "labels", "team")
			v.want("stops: the object is gone")
			if got := s.Web().GetFinalizers(); len(got) > 0 {
				s.T.Errorf("it keeps %v", got)
			}
		}},
		"it sees what a backup brings back, and what comes then": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", v.answers(v.reportsSize))
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			restore := s.Snapshot()
			s.Resize(7)
			s.Resize(8)
			s.Resize(9)
			s.Settle()
			v.clear()
			restore()
			s.Advance(time.Minute)
			v.want("sees: 1")
			s.Resize(3)
			v.want("sees: 3")
		}},
		"where caches hold keys alone, it has the object as a pass has read it": {func(foo *dsl.Resource, v *vigil) {
			foo.Cache = dsl.CacheLive
			watching()(foo, v)
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			v.want("begins: 1")
			s.Resize(2)
			v.want("sees: 2")
			s.Set("theirs", "status", "note")
			v.want("sees: 2")
			s.Resize(3)
			v.want("sees: 3")
			s.Wrote()
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { playDaemon(t, tt.operator, tt.play) })
	}
}

// TestADaemonNeverRunsTwiceAtOnce holds that one begins after the last one has ended, however quickly things change.
func TestADaemonNeverRunsTwiceAtOnce(t *testing.T) {
	slow := func(foo *dsl.Resource, v *vigil) {
		foo.Daemon("watch", v.watches(func(context.Context, *dsl.DaemonRequest) {
			<-time.After(10 * time.Second)
			v.note("ends")
		}), dsl.When(red), dsl.NoFinalizer())
	}
	tests := map[string]func(s *scene.Stage, v *vigil){
		"filters that flip": func(s *scene.Stage, v *vigil) {
			s.Begin()
			v.want("begins: 1")
			for range 5 {
				s.Set("blue", "spec", "color")
				s.Set("red", "spec", "color")
			}
			s.Settle()
			s.Set("blue", "spec", "color")
			s.Set("red", "spec", "color")
			s.Settle()
			v.mu.Lock()
			v.lines = nil
			v.mu.Unlock()
			s.Advance(time.Minute)
			v.mu.Lock()
			defer v.mu.Unlock()
			if got := strings.Join(v.lines, ", "); got != "" && got != "ends, begins: 1" {
				v.t.Errorf("daemons: %s", got)
			}
			if v.running["default/web"] != 1 {
				v.t.Errorf("%d run in the end, want 1", v.running["default/web"])
			}
		},
		"a filter that is back before it has ended": func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Set("blue", "spec", "color")
			s.Settle()
			s.Set("red", "spec", "color")
			v.want("begins: 1", "sees: 1", "stops: its filters do not match")
			s.Advance(9 * time.Second)
			v.want()
			s.Advance(time.Second)
			v.want("ends", "begins: 1")
		},
		"an object that is recreated under the same name": func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Remove()
			s.Create(strings.Replace(scene.Web, "size: 1", "size: 7", 1))
			v.want("begins: 1", "stops: the object is gone")
			s.Advance(10 * time.Second)
			v.want("ends", "begins: 7")
		},
		"one that was recreated while no process watched": func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.HoldWatches(scene.Foos)
			s.Remove()
			s.Create(strings.Replace(scene.Web, "size: 1", "size: 7", 1))
			s.ExpireWatches(scene.Foos)
			s.Advance(5 * time.Second)
			v.want("begins: 1", "stops: the object is gone")
			s.Advance(10 * time.Second)
			v.want("ends", "begins: 7")
		},
		"one that has gone while no process watched": func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.HoldWatches(scene.Foos)
			s.Remove()
			s.ExpireWatches(scene.Foos)
			s.Advance(time.Minute)
			v.want("begins: 1", "stops: the object is gone", "ends")
		},
		"one that is missing in the listing of a server that is behind runs on": func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Omit(scene.Foos, "default", "web")
			s.ExpireWatches(scene.Foos)
			s.Advance(10 * time.Minute)
			v.want("begins: 1")
			s.Reveal(scene.Foos, "default", "web")
			s.ExpireWatches(scene.Foos)
			s.Advance(time.Minute)
			v.want()
			s.Remove()
			s.Advance(time.Minute)
			v.want("stops: the object is gone", "ends")
		},
		"one that is missing in a listing, and then goes": func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Omit(scene.Foos, "default", "web")
			s.ExpireWatches(scene.Foos)
			s.Advance(time.Minute)
			v.want("begins: 1")
			s.Remove()
			s.Advance(10 * time.Minute)
			v.want("stops: the object is gone", "ends")
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) { playDaemon(t, slow, play) })
	}
}
