// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAHandlerThatDoesNotSeeTheObjectHoldsNoChild holds that who does not see the object any more holds no child, also when
// another one was refused before.
func TestAHandlerThatDoesNotSeeTheObjectHoldsNoChild(t *testing.T) {
	one, two := `apply: {a: `+sharedBy("one", "one")+`}`, `apply: {b: `+sharedBy("two", "two")+`}`
	for name, when := range map[string]struct {
		filter string
		away   func(s *scene.Stage)
	}{
		"by when":    {`when: self.spec.size <= 1`, func(s *scene.Stage) { s.Resize(2) }},
		"by a label": {`when: "!has(self.metadata.labels)"`, func(s *scene.Stage) { s.LabelTier("gold") }},
	} {
		for _, refused := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", after it was refused", false: ", at once"}[refused], func(t *testing.T) {
				scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: first, `+when.filter+`, `+one+`}, {id: second, `+two+`}]}`, func(s *scene.Stage) {
					s.Launch()
					if refused {
						s.Create(scene.WebThatShares)
					} else {
						s.Create(apart)
					}
					s.Advance(10 * time.Minute)
					when.away(s)
					s.Advance(time.Minute)
					if !refused {
						s.Set("shared", "spec", "two")
					}
					s.Advance(time.Hour)
					if got := sourceOf(s, "shared"); got != "two" {
						t.Errorf("the child is from %v, and its maker does not see the object", got)
					}
					s.Forget()
					s.Advance(time.Hour)
					s.Called()
					s.Wrote()
				})
			})
		}
	}
}

// TestAnUpdateHandlerThatDoesNotSeeTheObjectHoldsNoChild is the same of handlers that do not come back by themselves.
func TestAnUpdateHandlerThatDoesNotSeeTheObjectHoldsNoChild(t *testing.T) {
	scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [
		{id: first, causes: [create, update], when: self.spec.size <= 1, apply: {a: `+sharedBy("one", "one")+`}},
		{id: second, causes: [create, update], field: spec.two, apply: {b: `+sharedBy("two", "two")+`}}]}`, func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.WebThatShares)
		s.Advance(10 * time.Minute)
		s.Resize(2)
		s.Advance(time.Hour)
		if got := sourceOf(s, "shared"); got != "two" {
			t.Errorf("the child is from %v, and its maker does not see the object", got)
		}
	})
}

// TestARemovedHandlerHoldsNoChild holds that a handler that is gone is not taken for a step of one that is there.
func TestARemovedHandlerHoldsNoChild(t *testing.T) {
	for name, id := range map[string]string{"with a dot": "app.extra", "without": "extra"} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.ConfigMaps)
				foo.OnReconcile("app", scene.Succeeds)
				foo.OnReconcile(id, scene.MakesShared("one", "one"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.WebThatShares)
				s.Advance(time.Minute)
				s.Upgrade(func(foo *dsl.Resource, j *kit.Journal) {
					foo.Owns(scene.ConfigMaps)
					foo.OnReconcile("app", scene.Fails(dsl.Waiting("rain", 0)))
					foo.OnReconcile("second", scene.MakesShared("two", "two"))
				}, nil)
				s.Advance(time.Hour)
				if got := sourceOf(s, "shared"); got != "two" {
					t.Errorf("the child is from %v, whose maker is not there any more", got)
				}
			}})
		})
	}
}

// TestAChildIsHandedOver holds that who waits for what another one makes of its former child does not keep it from that one.
func TestAChildIsHandedOver(t *testing.T) {
	first := func(c context.Context, r *dsl.Request) error {
		o, err := r.Children.Get(scene.ConfigMaps, "shared")
		if err != nil {
			return err
		}
		if o == nil || scene.ValueAt(o, "data.from") != "two" {
			return dsl.Waiting("the child of the second one", 0)
		}
		return nil
	}
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("first", scene.MakesShared("one", "one"))
		foo.OnReconcile("second", scene.Succeeds)
	}, Play: func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.WebThatShares)
		s.Advance(time.Minute)
		s.Upgrade(func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("first", first)
			foo.OnReconcile("second", scene.MakesShared("two", "two"))
		}, nil)
		s.Advance(time.Hour)
		if got := sourceOf(s, "shared"); got != "two" {
			t.Errorf("the child is from %v: the one that had it waits for the one that wants it, and the other way round", got)
		}
	}})
}

// TestAForgedMakerDoesNotMoveAChild holds that who writes into a child that another handler has made it gives it to no handler
// that does not want it.
func TestAForgedMakerDoesNotMoveAChild(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("first", j.Note("first", scene.Fails(dsl.Waiting("rain", 0))))
		foo.OnReconcile("second", scene.MakesShared("two", "two"))
	}, Play: func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.WebThatShares)
		s.Advance(time.Minute)
		s.Update(scene.ConfigMaps, "default", "shared", func(o *unstructured.Unstructured) {
			o.Object["data"] = map[string]any{"from": "x"}
			notes := o.GetAnnotations()
			notes[scene.ChildAnnotation] = "first/"
			o.SetAnnotations(notes)
		})
		s.Advance(time.Hour)
		if got := sourceOf(s, "shared"); got != "two" {
			t.Errorf("the child is from %v", got)
		}
	}})
}

// TestAChildMovesBetweenHandlersWithoutACollision holds that the next version may have a child in another handler, or in a
// step, and no collision is reported.
func TestAChildMovesBetweenHandlersWithoutACollision(t *testing.T) {
	for name, two := range map[string][2]string{
		"steps become handlers": {
			`{id: both, steps: [{name: x, apply: {a: ` + sharedBy("one", "one") + `}}, {name: y, log: {message: hi}}]}`,
			`{id: both, log: {message: hi}}, {id: second, apply: {b: ` + sharedBy("one", "two") + `}}`,
		},
		"handlers become steps": {
			`{id: first, apply: {a: ` + sharedBy("one", "one") + `}}`,
			`{id: first, steps: [{log: {message: hi}}, {apply: {b: ` + sharedBy("one", "two") + `}}]}`,
		},
		"a child of another handler": {
			`{id: first, apply: {a: ` + sharedBy("one", "one") + `}}, {id: second, log: {message: hi}}`,
			`{id: first, log: {message: hi}}, {id: second, apply: {b: ` + sharedBy("one", "two") + `}}`,
		},
		"the other way round": {
			`{id: first, log: {message: hi}}, {id: second, apply: {a: ` + sharedBy("one", "one") + `}}`,
			`{id: first, apply: {b: ` + sharedBy("one", "two") + `}}, {id: second, log: {message: hi}}`,
		},
		"a first one of its own": {
			`{id: first, apply: {a: ` + sharedBy("one", "one") + `}}, {id: second, log: {message: hi}}`,
			`{id: first, apply: {a: ` + sharedBy("two", "one") + `}}, {id: second, apply: {b: ` + sharedBy("one", "two") + `}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: foos.v1.example.com, owns: [configmaps.v1], handlers: [`+two[0]+`]}`, func(s *scene.Stage) {
				s.Launch()
				s.Create(apart)
				s.Advance(time.Minute)
				if err := s.Process.Stop(); err != nil {
					t.Fatal(err)
				}
				op, err := scene.ParseYAML(`{resource: foos.v1.example.com, owns: [configmaps.v1], handlers: [` + two[1] + `]}`)
				if err != nil {
					t.Fatal(err)
				}
				s.Operator = op
				s.Launch()
				s.Advance(time.Minute)
				if got := sourceOf(s, "shared"); got != "two" {
					t.Errorf("the child is from %v", got)
				}
				wantNoMoreWrites(s)
				s.WantNoWarning()
			})
		})
	}
}

// TestTheFirstHandlerKeepsAChildThroughACrash holds that whatever request the process ends after, the child comes to be the
// first one's, and stays so.
func TestTheFirstHandlerKeepsAChildThroughACrash(t *testing.T) {
	for n := range 5 {
		scene.PlayYAML(t, twoHandlers("${self.spec.one}", "${self.spec.two}"), func(s *scene.Stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(time.Minute)
			s.Process.CrashAfter(n)
			s.Set("shared", "spec", "two")
			s.Advance(10 * time.Minute)
			s.Process.Restart()
			s.Advance(10 * time.Minute)
			if got := sourceOf(s, "shared"); got != "one" {
				t.Errorf("%d: the child is from %v", n, got)
			}
			wantNoMoreWrites(s)
			swapNames(s, "other", "shared")
			s.Advance(time.Second)
			s.Process.Restart()
			s.Advance(20 * time.Minute)
			if a, b := sourceOf(s, "other"), sourceOf(s, "shared"); a != "one" || b != "two" {
				t.Errorf("%d: other is from %v, shared from %v", n, a, b)
			}
			wantNoMoreWrites(s)
		})
	}
}

// TestThreeHandlersMayExchangeTheNamesOfTheirChildren holds that three handlers can exchange the names of their children in
// one change.
func TestThreeHandlersMayExchangeTheNamesOfTheirChildren(t *testing.T) {
	text := `{resource: foos.v1.example.com, handlers: [{id: first, apply: {a: ` + sharedBy("one", "one") + `}}, {id: second, apply: {b: ` + sharedBy("two", "two") + `}}, {id: third, apply: {c: ` + sharedBy("three", "three") + `}}]}`
	for _, way := range [][3]string{{"b", "c", "a"}, {"c", "a", "b"}, {"b", "a", "c"}, {"c", "b", "a"}} {
		scene.PlayYAML(t, text, func(s *scene.Stage) {
			s.Launch()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {one: a, two: b, three: c}}`)
			s.Advance(time.Minute)
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{"one": way[0], "two": way[1], "three": way[2]}
			})
			s.Advance(20 * time.Minute)
			if a, b, c := sourceOf(s, way[0]), sourceOf(s, way[1]), sourceOf(s, way[2]); a != "one" || b != "two" || c != "three" {
				t.Errorf("%v: %v %v %v", way, a, b, c)
			}
			wantNoMoreWrites(s)
			s.WantNoWarning()
			if t.Failed() {
				t.Fatal(way)
			}
		})
	}
}
