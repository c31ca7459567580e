// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// row brings an object into trouble, and returns what operator why says then.
type row func(t *testing.T) string

// rows has the rows of the table in docs/troubleshooting.md, by what they say that the object is stuck for. The table has the lines that
// the answers must have.
func rows() map[string]row {
	fine := scene.Succeeds
	fails := func(context.Context, *dsl.Request) error { return dsl.Temporary(scene.ErrAgain, time.Hour) }
	out := map[string]row{
		"its `when` fails": inGo(func(foo *dsl.Resource) {
			foo.OnReconcile("app", fine, dsl.When(func(*dsl.Subject) (bool, error) { return false, dsl.Permanent(errors.New("no size")) }))
		}, created),
		"a handler failed, and waits for its back-off": inGo(func(foo *dsl.Resource) { foo.OnReconcile("app", fails) }, created),
		"a handler failed for good": inGo(func(foo *dsl.Resource) {
			foo.OnReconcile("app", func(context.Context, *dsl.Request) error { return dsl.Permanent(errors.New("no such size")) })
		}, created),
		"the time for all its attempts is over": inGo(func(foo *dsl.Resource) {
			foo.OnReconcile("app", func(context.Context, *dsl.Request) error { return dsl.Temporary(scene.ErrAgain, time.Minute) }, dsl.Deadline(90*time.Second))
		}, func(s *scene.Stage) {
			created(s)
			s.Advance(5 * time.Minute)
		}),
		"the handler before it is not through": inGo(func(foo *dsl.Resource) {
			foo.OnReconcile("first", fails)
			foo.OnReconcile("second", fine, dsl.After("first"))
		}, created),
		"the lifecycle chooses another handler": about(why.Question{Resource: "foo", Namespace: "default", Name: "web", History: true}, func(_ *scene.Stage, foo *dsl.Resource) {
			foo.Lifecycle = dsl.OneByOne
			foo.OnReconcile("second", fine)
		}),
		"the time of a schedule has not come": inGo(func(foo *dsl.Resource) { foo.Cron("0 4 * * *", "nightly", fine) }, created),
		"a handler hangs": inGo(func(foo *dsl.Resource) { foo.OnReconcile("app", hangs, dsl.Timeout(time.Hour)) }, func(s *scene.Stage) {
			created(s)
			s.Advance(5 * time.Minute)
		}),
		"the cache is behind": inGo(func(foo *dsl.Resource) {
			foo.Every(time.Minute, "beat", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetStatus("beat", time.Now().String())
				return nil
			})
		}, func(s *scene.Stage) {
			created(s)
			s.HoldWatches(scene.Foos)
			s.Advance(3 * time.Minute)
		}),
		"its handlers undo each other": inGo(func(foo *dsl.Resource) {
			foo.OnReconcile("left", flips("left"))
			foo.OnReconcile("right", flips("right"))
		}, func(s *scene.Stage) {
			created(s)
			s.Advance(10 * time.Second)
		}),
		"other reconciles hold the memory": inGo(func(foo *dsl.Resource) { foo.OnReconcile("app", hangs, dsl.Timeout(time.Hour)) }, memoryShort),
		"a write is refused": inGo(func(foo *dsl.Resource) { foo.OnReconcile("app", flips("left")) }, func(s *scene.Stage) {
			s.Launch()
			s.FailWhile("patch", scene.Foos, apierrors.NewInternalError(errors.New("no room")))
			s.Create(scene.Web)
			s.Settle()
		}),
		"it is paused": inGo(func(foo *dsl.Resource) { foo.OnReconcile("app", fine) }, func(s *scene.Stage) {
			created(s)
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
				o.SetAnnotations(map[string]string{"op.handwerk.dev/paused": "while we move"})
			})
		}),
		"a right is missing": inGo(func(foo *dsl.Resource) { foo.OnReconcile("app", fine, dsl.Needs("create", scene.Jobs)) }, func(s *scene.Stage) {
			s.Forbid("create", scene.Jobs)
			created(s)
			s.Advance(10 * time.Second)
		}),
		"a selector does not select it": about(why.Question{Resource: "Foo", Namespace: "default", Name: "web"}, func(s *scene.Stage, foo *dsl.Resource) { foo.LabelSelector = "tier=gold" }),
		"its namespace is not in the scope": about(why.Question{Resource: "Foo", Namespace: "default", Name: "web"}, func(s *scene.Stage, _ *dsl.Resource) {
			s.Operator.Scope.Namespaces = []string{"shop"}
		}),
		"its namespace has left the scope": inGo(func(foo *dsl.Resource) { foo.OnReconcile("app", fine) }, scopeLeft),
		"its CRD is missing": about(why.Question{Resource: "gones", Namespace: "default", Name: "web"}, func(s *scene.Stage, _ *dsl.Resource) {
			s.Operator.Resource("gones.v1.example.com", func(gone *dsl.Resource) { gone.OnReconcile("other", fine) })
		}),
		"the operator is down": down,
	}
	maps.Copy(out, deletions())
	maps.Copy(out, configured())
	return out
}

// deletions are the rows about objects that are being deleted.
func deletions() map[string]row {
	removed := func(s *scene.Stage) {
		created(s)
		s.Remove()
	}
	lingers := func(ctx context.Context, _ *dsl.DaemonRequest) error {
		<-ctx.Done()
		time.Sleep(10 * time.Second)
		return nil
	}
	return map[string]row{
		"a handler holds the deletion": inGo(func(foo *dsl.Resource) {
			foo.OnDelete("farewell", func(context.Context, *dsl.Request) error { return dsl.Permanent(errors.New("the bucket is not empty")) })
		}, removed),
		"a child holds it": inGo(func(foo *dsl.Resource) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("keep", keepsLabelled)
		}, func(s *scene.Stage) {
			created(s)
			s.Update(scene.ConfigMaps, "default", "web", finalize("example.com/theirs"))
			s.Remove()
		}),
		"a daemon holds it": inGo(func(foo *dsl.Resource) { foo.Daemon("poll", lingers) }, removed),
		"somebody else's finalizer holds it": inGo(func(foo *dsl.Resource) { foo.OnReconcile("app", scene.Succeeds) }, func(s *scene.Stage) {
			created(s)
			s.Update(scene.Foos, "default", "web", finalize("example.com/theirs"))
			s.Remove()
		}),
		"a delete handler waits for daemons": inGo(func(foo *dsl.Resource) {
			foo.OnDelete("farewell", scene.Succeeds)
			foo.Daemon("poll", lingers)
		}, removed),
	}
}

// configured are the rows about operators in YAML.
func configured() map[string]row {
	const (
		sets    = `set: {status: {size: "${self.spec.size}"}}`
		machine = `machine: {states: [{name: Pending, transitions: [{to: Done, when: "self.spec.size > 3"}, {to: Gone, manual: true}]}, {name: Done, terminal: true}, {name: Gone, terminal: true}]}`
		shared  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: `
	)
	return map[string]row{
		"a handler's `when` is false": inYAML(`handlers: [{id: app, causes: [reconcile], when: "self.spec.size > 3", `+sets+`}]`, nil),
		"a label does not match": inYAML(`handlers: [{id: app, causes: [reconcile], labels: {tier: gold}, `+sets+`}]`, func(s *scene.Stage) {
			s.LabelTier("silver")
		}),
		"a related object is missing": inYAML(`related: [{name: registry, resource: secrets.v1, object: registry}], `+
			`handlers: [{id: app, apply: {web: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {user: "${related.registry.data.user}"}}}}]`, nil),
		"a child is not ready":                                inYAML(`handlers: [{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}}}]`, nil),
		"two handlers keep one child, and otherwise":          inYAML(`handlers: [{id: one, apply: {one: `+shared+`web}, data: {by: one}}}}, {id: two, apply: {two: `+shared+`"${self.metadata.name}"}, data: {by: two}}}}]`, nil),
		"the data of a Secret is wrong, and its key is named": inYAML(`handlers: [{id: app, apply: {login: {apiVersion: v1, kind: Secret, metadata: {name: login}, data: {password: "${self.metadata.name + '!'}"}}}}]`, nil),
		"the time that its `at` gives has not come":           inYAML(`handlers: [{id: expire, at: "timestamp(self.metadata.creationTimestamp) + duration('1h')", `+sets+`}]`, nil),
		"its `at` gives no time":                              inYAML(`handlers: [{id: expire, at: "self.spec.?until", `+sets+`}]`, nil),
		"its `at` fails":                                      inYAML(`handlers: [{id: expire, at: self.spec.until, `+sets+`}]`, nil),
		"a machine waits for a condition":                     inYAML(machine, nil),
		"a machine waits for a person":                        inYAML(machine, nil),
	}
}

// inGo is a row about an operator that is written in Go.
func inGo(operator func(foo *dsl.Resource), play func(s *scene.Stage)) row {
	return func(t *testing.T) (got string) {
		scene.Play(t, scene.Scenario{
			Operator: func(foo *dsl.Resource, _ *kit.Journal) { operator(foo) },
			Play: func(s *scene.Stage) {
				play(s)
				s.Settle()
				got = answer(s)
			},
		})
		return got
	}
}

// inYAML is a row about an operator in YAML, whose resource has this beside its name.
func inYAML(does string, then func(s *scene.Stage)) row {
	return func(t *testing.T) (got string) {
		playYAML(t, does, func(s *scene.Stage) {
			if then != nil {
				then(s)
				s.Settle()
			}
			got = answer(s)
		})
		return got
	}
}

// about is a row about an object that the operator does not see.
func about(q why.Question, define func(s *scene.Stage, foo *dsl.Resource)) row {
	return func(t *testing.T) (got string) {
		scene.Play(t, scene.Scenario{
			Operator: func(foo *dsl.Resource, _ *kit.Journal) { foo.OnReconcile("app", scene.Succeeds) },
			Play: func(s *scene.Stage) {
				define(s, s.Operator.Resources()[0])
				created(s)
				got = answerTo(s, q)
			},
		})
		return got
	}
}

func created(s *scene.Stage) {
	s.Launch()
	s.Create(scene.Web)
	s.Settle()
}

// hangs ends with its context.
func hangs(ctx context.Context, _ *dsl.Request) error {
	<-ctx.Done()
	return ctx.Err()
}

// memoryShort makes two large objects in an operator with little memory. The reconcile over one waits for the reconcile over the other.
func memoryShort(s *scene.Stage) {
	s.WithLittleMemory(s.Launch)
	for _, name := range []string{"other", "web"} {
		s.Create(scene.Large(name))
		s.Settle()
	}
}

// scopeLeft takes the label off the object's namespace while the rights in another one are asked for, so that the feed takes no other step.
func scopeLeft(s *scene.Stage) {
	label := func(namespace, tenant string) {
		s.Update("namespaces.v1", "", namespace, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"tenant": tenant}) })
	}
	s.Operator.Scope.NamespaceSelector = "tenant=x"
	s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: other}}`)
	label("default", "x")
	s.Create(scene.Web)
	gate := make(chan struct{})
	s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Config.Wrap(scene.HoldsReviewsOf("other", gate)) })
	s.Settle()
	label("other", "x")
	s.Settle()
	label("default", "y")
	s.Settle()
	s.T.Cleanup(func() { close(gate) })
}
