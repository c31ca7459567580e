// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// history asks about web and its reconciles.
var history = why.Question{Resource: "foo", Namespace: "default", Name: "web", History: true}

// TestHistory holds what is kept of the reconciles over an object, in order.
func TestHistory(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Lifecycle = dsl.OneByOne
			foo.OnReconcile("first", scene.Succeeds)
			foo.OnReconcile("second", scene.Succeeds)
		},
		Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Settle()
			s.Advance(time.Minute)
			s.Resize(5)
			s.Settle()
			got := answerTo(s, history)
			wantLine(s, got, "handler second was not chosen by the resource's lifecycle: other handlers go first")
			wantLine(s, got, "spec.size: from 1 to 5")
		},
	})
}

// TestALargeObjectKeepsTheHistoryOfOthers edits one large object of another namespace again and again.
func TestALargeObjectKeepsTheHistoryOfOthers(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		s.Operator.Settings.History = new(int64(1 << 20)) // a sixteenth of the default, and so is the text
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: other}}`)
		s.Begin()
		s.Resize(5)
		s.Settle()
		large := func() string {
			text := make([]byte, 56_000)
			for i := range text {
				text[i] = byte('a' + rand.IntN(26))
			}
			return string(text)
		}
		s.Create(scene.FooIn("other", "large", map[string]any{"blob": large()}))
		for range 40 {
			s.Update(scene.Foos, "other", "large", func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, large(), "spec", "blob") })
			s.Settle()
		}
		wantLine(s, answerTo(s, history), "spec.size: from 1 to 5")
		s.Take()
	}})
}

// TestAQuestionIsNoPass asks between edits, and finds all of them in the history.
func TestAQuestionIsNoPass(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		s.Begin()
		for i := range 15 {
			s.Resize(int64(i + 2))
			s.Settle()
			answer(s)
			s.Advance(time.Second)
			answer(s)
		}
		ran := 0
		for _, p := range passes(s) {
			if len(p.Woken) == 0 {
				t.Errorf("nothing has woken the pass %+v", p)
			}
			ran += len(p.Attempts)
		}
		if ran != 16 {
			t.Errorf("%d attempts are known, want 16", ran)
		}
		s.Take()
	}})
}

// TestOnlyAChangeIsNamedAsAChange holds that a handler which ran for something else has not run for a change of the object.
func TestOnlyAChangeIsNamedAsAChange(t *testing.T) {
	for name, tt := range map[string]struct {
		operator func(foo *dsl.Resource, j *kit.Journal)
		then     func(s *scene.Stage)
	}{
		"a timer": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.On([]dsl.Cause{dsl.Timer}, "tick", scene.Succeeds, dsl.At(scene.WithoutJitter(dsl.Timing{Every: time.Minute})))
		}, func(s *scene.Stage) { s.Advance(5 * time.Minute) }},
		"a related object": {func(foo *dsl.Resource, j *kit.Journal) {
			scene.NotesRelated(dsl.Relation{Select: scene.RelatedByName}, dsl.Create, dsl.Update, dsl.RelatedChange)(foo, j)
		}, func(s *scene.Stage) {
			for _, value := range []string{"2", "3"} {
				s.Update(scene.ConfigMaps, "default", "a", scene.SetField(value, "data", "v"))
				s.Settle()
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: tt.operator, Play: func(s *scene.Stage) {
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: "1"}}`)
				s.Launch()
				s.Create(scene.FooWithRef("web", "a"))
				s.Settle()
				s.Resize(5)
				s.Advance(10 * time.Second)
				tt.then(s)
				s.Settle()
				s.Take()
				if got := answer(s); strings.Contains(got, "for a change of") {
					t.Errorf("it did not run for a change:\n%s", got)
				}
			}})
		})
	}
}

// TestWhatAnAttemptWasForStaysWhileItIsTriedAgain holds that the change that began a run is named until the run has ended.
func TestWhatAnAttemptWasForStaysWhileItIsTriedAgain(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
		foo.OnReconcile("app", func(_ context.Context, r *dsl.Request) error {
			if size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size"); size > 1 {
				return dsl.Temporary(scene.ErrAgain, 10*time.Second)
			}
			return nil
		})
	}, Play: func(s *scene.Stage) {
		s.Begin()
		s.Resize(5)
		s.Advance(time.Minute)
		wantLine(s, answer(s), "for a change of spec.size: from 1 to 5")
	}})
}

// TestHistoryShowsNoSecret holds that no value of a Secret is shown, whatever has changed and whoever looks at it.
func TestHistoryShowsNoSecret(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		s := scene.NewStage(t, c)
		s.Operator.Resource("secrets.v1", func(r *dsl.Resource) {
			r.OnReconcile("app", scene.Succeeds, dsl.Annotation("pw", "hunter2"))
		})
		inOps(s)
		s.Launch()
		s.Create(`{apiVersion: v1, kind: Secret, metadata: {name: web, annotations: {pw: geheim}}, stringData: {a: verysecret}}`)
		s.Settle()
		s.Update("secrets.v1", "default", "web", func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"pw": "geheim2"})
			_ = unstructured.SetNestedField(o.Object, "Z2VoZWltMw==", "data", "verysecret")
		})
		s.Settle()
		a, err := s.Process.Engine().Why(context.Background(), why.Question{Resource: "secrets", Namespace: "default", Name: "web", History: true})
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%+v", *a)
		for _, secret := range []string{"geheim", "Z2Vo"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s is shown: %s", secret, text)
			}
		}
		if want := `handler app does not see the object: annotation pw is not "hunter2"`; a.Handler("app").Says != want {
			t.Errorf("it is said %q, want %q", a.Handler("app").Says, want)
		}
	})
}
