// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// large is a spec whose JSON is larger than what is kept as it is.
func large(n int) string { return strings.Repeat("x", n) }

func TestTheStateAnnotationHasWhatHandlersNeed(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"nothing for level-triggered handlers": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Settle()
			if keys := s.Web().GetAnnotations(); len(keys) > 0 {
				s.T.Errorf("annotations %v", keys)
			}
		}},
		"a digest where no handler reads the old state": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "made", scene.NotesOld(j), dsl.NoOld())
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.WantStoredState("generation", "handlers", "handwerk", "uid")
				s.Resize(2)
				s.Called("create map[] []", "update map[] []")
			},
		},
		"a digest where handlers run for create alone": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("made", j.Note("made")) },
			Play: func(s *scene.Stage) {
				s.Begin()
				s.WantStoredState("generation", "handlers", "handwerk", "uid")
			},
		},
		"the essence where a handler wants to see what was": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "made", scene.NotesOld(j))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.WantStoredState("generation", "handlers", "handwerk", "old", "uid")
				s.Resize(2)
				s.Called("update map[spec:map[color:red size:1]] [change spec.size 1 2]")
				s.Set("x", "metadata", "labels", "tier")
				s.Called("update map[spec:map[color:red size:2]] [add metadata <nil> map[labels:map[tier:x]]]")
				s.Process.Restart()
				s.Set("y", "metadata", "labels", "tier")
				s.Called("update map[metadata:map[labels:map[tier:x]] spec:map[color:red size:2]] [change metadata.labels.tier x y]")
			},
		},
		"the fields that handlers name where all of them name some": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnField("spec.size", "sized", scene.NotesOld(j)) },
			Play: func(s *scene.Stage) {
				s.Begin()
				if diff := cmp.Diff(map[string]any{"spec": map[string]any{"size": 1.0}}, s.StoredState()["old"]); diff != "" {
					s.T.Errorf("old (-want +got):\n%s", diff)
				}
				s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
					o.Object["spec"] = map[string]any{"size": int64(2), "color": "blue"}
				})
				s.Called("update map[spec:map[size:1]] [change spec.size 1 2]")
			},
		},
	})
}

// TestALargeEssenceIsPackedOrADigest holds that an essence of any size can be handled.
func TestALargeEssenceIsPackedOrADigest(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a large essence is compressed, and is old all the same": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("changed", j.Note("changed", func(_ context.Context, r *dsl.Request) error {
					was, _ := dsl.MustParsePath("spec.text").In(r.Old)
					j.Add(fmt.Sprint("old has ", len(was.(string))))
					return nil
				}))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {text: ` + large(2000) + `}}`)
				s.WantStoredState("generation", "handlers", "handwerk", "packed", "uid")
				if n := len(s.Web().GetAnnotations()[scene.StateAnnotation]); n > 220 {
					s.T.Errorf("%d bytes are stored", n)
				}
				s.Process.Restart()
				s.Resize(2)
				s.Called("changed update", "old has 2000")
			},
		},
		"what is too large even so is a digest, and the object is handled": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("changed", j.Note("changed", func(_ context.Context, r *dsl.Request) error {
					if r.Old != nil {
						j.Add("old is there")
					}
					return nil
				}))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				o := s.Create(scene.Web)
				o.Object["spec"] = map[string]any{"noise": noise(400_000)}
				s.Settle()
				s.Update(scene.Foos, "default", "web", func(now *unstructured.Unstructured) { now.Object["spec"] = o.Object["spec"] })
				s.Called("changed update", "old is there")
				s.WantStoredState("generation", "handlers", "handwerk", "uid")
				s.Resize(1)
				s.Called("changed update")
			},
		},
	})
}

// TestTheStateAnnotationHasTheProgressOfHandlers holds that people and later processes find what is not finished.
func TestTheStateAnnotationHasTheProgressOfHandlers(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"handlers that are not finished, with what went wrong, and nothing when all are": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made", scene.RetriesAfter(scene.Late), scene.Succeeds))
				foo.OnCreate("other", j.Note("other"))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.WantStoredState("generation", "handlers", "handwerk", "uid")
				handlers := s.StoredState()["handlers"].(map[string]any)
				made := handlers["made"].(map[string]any)["try"].(map[string]any)
				if made["message"] != scene.ErrAgain.Error() || made["attempts"] != 1.0 || made["due"] == nil {
					s.T.Errorf("the failing handler's record is %v", made)
				}
				s.Advance(scene.Late)
				s.WantStoredState("generation", "handlers", "handwerk", "uid")
			},
		},
		"a handler that failed for good, for people to read": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", scene.Fails(dsl.Permanent(scene.ErrAgain)))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.WantStoredState("generation", "handlers", "handwerk", "uid")
			},
		},
	})
}

// TestTheStateAnnotationSurvivesSchemasPeopleAndOtherDomains holds what becomes of the annotation under other conditions.
func TestTheStateAnnotationSurvivesSchemasPeopleAndOtherDomains(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"what somebody has spoilt is put right while the process lives, and is handled as new by another": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("made", j.Note("made")) },
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Set("spoilt", "metadata", "annotations", scene.StateAnnotation)
				s.Called()
				s.Wrote("patch foos default/web")
				s.WantStoredState("generation", "handlers", "handwerk", "uid")
				scene.Stop(s)
				s.Set("spoilt", "metadata", "annotations", scene.StateAnnotation)
				s.Process.Restart()
				s.Called("made create")
				s.WantStoredState("generation", "handlers", "handwerk", "uid")
			},
		},
		"the marks of an operator with a domain of its own": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made"))
				foo.OnDelete("left", j.Note("left"))
			},
			Play: func(s *scene.Stage) {
				s.Operator.Domain = "example.org"
				s.Begin()
				s.WantFinalizers("op.example.org/finalizer")
				if s.Web().GetAnnotations()["op.example.org/state"] == "" {
					s.T.Errorf("annotations %v", s.Web().GetAnnotations())
				}
				s.Resize(2)
				s.Remove()
				s.WantGone()
			},
		},
	})
}

// noise is text that does not compress well.
func noise(n int) string {
	x, out := uint32(1), make([]byte, n)
	for i := range out {
		x = x*1664525 + 1013904223
		out[i] = 'a' + byte(x>>24)%26
	}
	return string(out)
}

// TestTwoOperatorsOfOneObjectDoNotAnswerEachOther holds that two operators on one object do not answer each other.
func TestTwoOperatorsOfOneObjectDoNotAnswerEachOther(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: scene.EachCause, Play: func(s *scene.Stage) {
		other := dsl.New("other")
		other.Domain = "example.org"
		theirs := &kit.Journal{}
		other.Resource(scene.Foos, func(foo *dsl.Resource) { scene.EachCause(foo, theirs) })
		s.Start(other)
		s.Launch()
		s.Create(scene.Web)
		s.Advance(time.Minute)
		s.Called("made create")
		s.Resize(2)
		s.Advance(time.Minute)
		s.Called("changed update", "sized update")
		s.Remove()
		s.WantGone()
		s.Called("left delete")
		if n := len(theirs.Take()); n != 4 {
			s.T.Errorf("the other operator's handlers were called %d times, want 4", n)
		}
	}})
}
