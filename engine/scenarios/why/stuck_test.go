// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// keepsLabelled keeps a ConfigMap that has a label for its tie.
func keepsLabelled(ctx context.Context, r *dsl.Request) error {
	_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("default", "x"), dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled})
	return err
}

// finalize returns a change that adds a finalizer.
func finalize(name string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetFinalizers(append(o.GetFinalizers(), name)) }
}

// flips labels its object in one way, and another handler labels it in another one.
func flips(which string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		r.Patch.Label("side", which)
		return nil
	}
}

// TestWhyAnObjectIsStuck holds, for each way in which an object can be stuck beside its handlers, the line that says so.
func TestWhyAnObjectIsStuck(t *testing.T) {
	created := func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Settle()
	}
	for name, tt := range map[string]story{
		"a handler that is tried again holds the deletion": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnDelete("farewell", func(context.Context, *dsl.Request) error { return dsl.Temporary(scene.ErrAgain, time.Hour) })
		}, func(s *scene.Stage) {
			created(s)
			s.Remove()
		}, "held by handler farewell, which has not finished: not yet"},
		"a daemon runs": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Daemon("poll", func(ctx context.Context, _ *dsl.DaemonRequest) error {
				<-ctx.Done()
				return nil
			})
		}, created, "daemon poll runs"},
		"a child is named with how it is tied": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("keep", keepsLabelled)
		}, created, "child ConfigMap default/web of handler keep (by its label, and listed on the object): ready"},
		"the machine's time is named": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Machine(dsl.Machine{States: []dsl.State{
				{Name: "Pending", Stay: &dsl.Stay{AtMost: time.Hour, Then: "Done"}}, {Name: "Done", Terminal: true},
			}})
		}, created, "to Done: in 1h, when its time is over"},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: tt.operator, Play: func(s *scene.Stage) {
				tt.then(s)
				s.Settle()
				wantLine(s, answer(s), tt.want)
			}})
		})
	}
}

// TestWhyAnObjectIsNotSeen holds what is said of objects that the operator does not see.
func TestWhyAnObjectIsNotSeen(t *testing.T) {
	type ask struct {
		operator func(s *scene.Stage)
		question why.Question
		want     string
	}
	foos := func(define func(*dsl.Resource)) func(*scene.Stage) {
		return func(s *scene.Stage) {
			s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
				foo.OnReconcile("app", scene.Succeeds)
				if define != nil {
					define(foo)
				}
			})
		}
	}
	web := why.Question{Resource: "Foo", Namespace: "default", Name: "web"}
	for name, tt := range map[string]ask{
		"it does not exist":   {foos(nil), why.Question{Resource: "foos.example.com", Namespace: "default", Name: "none"}, "not seen: there is no such object"},
		"no field selects it": {foos(func(foo *dsl.Resource) { foo.FieldSelector = "metadata.name=other" }), web, "not seen: the cache does not have it: the resource's field selector (metadata.name=other) may not select it"},
		"nobody handles it":   {foos(nil), why.Question{Resource: "bars", Namespace: "default", Name: "web"}, "looking for bars: operator op does not handle it; it handles foos.v1.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				s := scene.NewStage(t, c)
				tt.operator(s)
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				if got := answerTo(s, tt.question); !strings.Contains(got, tt.want) {
					t.Errorf("the answer lacks %q:\n%s", tt.want, got)
				}
			})
		})
	}
}
