// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/engine/why"
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
	fine := scene.Succeeds
	created := func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Settle()
	}
	for name, tt := range map[string]story{
		"a handler that failed for good holds the deletion": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.OnDelete("farewell", func(context.Context, *dsl.Request) error { return dsl.Permanent(errors.New("the bucket is not empty")) })
		}, func(s *scene.Stage) {
			created(s)
			s.Remove()
		}, "held by handler farewell, which failed for good: the bucket is not empty"},
		"a handler that is tried again holds the deletion": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.OnDelete("farewell", func(context.Context, *dsl.Request) error { return dsl.Temporary(scene.ErrAgain, time.Hour) })
		}, func(s *scene.Stage) {
			created(s)
			s.Remove()
		}, "held by handler farewell, which is not through"},
		"a child holds the deletion": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("keep", keepsLabelled)
		}, func(s *scene.Stage) {
			created(s)
			s.Update(scene.ConfigMaps, "default", "web", finalize("example.com/theirs"))
			s.Remove()
		}, "held by child ConfigMap default/web, which is not gone"},
		"somebody else's finalizer holds the deletion": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.OnReconcile("app", fine)
		}, func(s *scene.Stage) {
			created(s)
			s.Update(scene.Foos, "default", "web", finalize("example.com/theirs"))
			s.Remove()
		}, "held by finalizer example.com/theirs, which is not this operator's"},
		"a daemon that does not end holds the deletion": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.Daemon("poll", func(ctx context.Context, _ *dsl.DaemonRequest) error {
				<-ctx.Done()
				time.Sleep(10 * time.Second)
				return nil
			})
		}, func(s *scene.Stage) {
			created(s)
			s.Remove()
		}, "held by daemon poll, which has not ended"},
		"handlers of the deletion wait for daemons": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.OnDelete("farewell", fine)
			foo.Daemon("poll", func(ctx context.Context, _ *dsl.DaemonRequest) error {
				<-ctx.Done()
				time.Sleep(10 * time.Second)
				return nil
			})
		}, func(s *scene.Stage) {
			created(s)
			s.Remove()
		}, "handler farewell runs when the object's daemons have ended"},
		"a daemon runs": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.Daemon("poll", func(ctx context.Context, _ *dsl.DaemonRequest) error {
				<-ctx.Done()
				return nil
			})
		}, created, "daemon poll runs"},
		"a child is named with how it is tied": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("keep", keepsLabelled)
		}, created, "child ConfigMap default/web of handler keep, by record: ready"},
		"handlers undo each other": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.OnReconcile("left", flips("left"))
			foo.OnReconcile("right", flips("right"))
		}, func(s *scene.Stage) {
			created(s)
			s.Advance(10 * time.Second)
		}, "no handler runs: the object's passes wrote again and again without coming to rest; the next pass is in 50s"},
		"the cache does not show a write yet": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.Every(time.Minute, "beat", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetStatus("beat", time.Now().String())
				return nil
			})
		}, func(s *scene.Stage) {
			created(s)
			s.HoldWatches(scene.Foos)
			s.Advance(3 * time.Minute)
		}, "no handler runs until the cache shows the operator's own writes"},
		"a handler hangs": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.OnReconcile("app", func(ctx context.Context, _ *dsl.Request) error {
				<-ctx.Done()
				return ctx.Err()
			}, dsl.Timeout(time.Hour))
		}, func(s *scene.Stage) {
			created(s)
			s.Advance(5 * time.Minute)
		}, "this is what is known without a new look at it: handler app has been running for 5m0s"},
		"a write is refused": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.OnReconcile("app", flips("left"))
		}, func(s *scene.Stage) {
			s.Launch()
			s.FailWhile("patch", scene.Foos, apierrors.NewInternalError(errors.New("no room")))
			s.Create(scene.Web)
			s.Settle()
		}, "pass could not be finished: writing object: Internal error occurred: no room"},
		"it is paused": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.OnReconcile("app", fine)
		}, func(s *scene.Stage) {
			created(s)
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
				o.SetAnnotations(map[string]string{"op.handwerk.dev/paused": "while we move"})
			})
			s.Settle()
		}, "no handler runs: paused: while we move"},
		"a right is missing": {func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.OnReconcile("app", fine, dsl.Needs("create", scene.Jobs))
		}, func(s *scene.Stage) {
			s.Forbid("create", scene.Jobs)
			created(s)
			s.Advance(10 * time.Second)
		}, "right is missing: may not create jobs.batch (handler foos/app)"},
		"the machine's time is named": {func(foo *dsl.Resource, _ *enginetest.Journal) {
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
		"it does not exist":    {foos(nil), why.Question{Resource: "foos.example.com", Namespace: "default", Name: "none"}, "not seen: there is no such object"},
		"no label selects it":  {foos(func(foo *dsl.Resource) { foo.LabelSelector = "tier=gold" }), web, "not seen: the resource's label selector (tier=gold) does not select it: it has no labels"},
		"no field selects it":  {foos(func(foo *dsl.Resource) { foo.FieldSelector = "metadata.name=other" }), web, "not seen: the cache does not have it: the resource's field selector (metadata.name=other) may not select it"},
		"its namespace is out": {func(s *scene.Stage) { foos(nil)(s); s.Operator.Scope.Namespaces = []string{"shop"} }, web, "not seen: namespace default is not in the operator's scope: shop"},
		"nobody handles it":    {foos(nil), why.Question{Resource: "bars", Namespace: "default", Name: "web"}, "looking for bars: operator op does not handle it; it handles foos.v1.example.com"},
		"its CRD is missing": {func(s *scene.Stage) {
			foos(nil)(s)
			s.Operator.Resource("gones.v1.example.com", func(gone *dsl.Resource) { gone.OnReconcile("other", scene.Succeeds) })
		}, why.Question{Resource: "gones", Namespace: "default", Name: "web"}, "not seen: gones.v1.example.com are not watched: not served"},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
				c.Serve(enginetest.Resource{Name: scene.Foos, Kind: "Foo"})
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
