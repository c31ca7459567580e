// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// reportsLate is a handler that writes the size into the status after a second.
func reportsLate(ctx context.Context, r *dsl.Request) error {
	if err := scene.TakesTime(time.Second)(ctx, r); err != nil {
		return err
	}
	return scene.ReportsSize(ctx, r)
}

// annotated sets an annotation of web.
func annotated(key, value string) func(*scene.Stage) {
	return func(s *scene.Stage) {
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
			all := o.GetAnnotations()
			if all == nil {
				all = map[string]string{}
			}
			all[key] = value
			o.SetAnnotations(all)
		})
	}
}

// inListing has the operator answer a change of web with a status, which takes a second. Meanwhile somebody else does something that the
// watch does not show. Then the watch expires, and a listing shows both as one state: that of the operator's own write.
func inListing(s *scene.Stage, meanwhile func(*scene.Stage)) {
	s.T.Helper()
	s.Begin()
	s.Advance(time.Minute)
	s.Forget()
	s.Resize(2)
	s.Settle()
	s.HoldWatches(scene.Foos)
	meanwhile(s)
	s.Advance(10 * time.Second)
	s.ExpireWatches(scene.Foos)
	s.ReleaseWatches(scene.Foos)
	s.Advance(time.Minute)
}

// TestAListingThatShowsAnOwnWriteShowsWhatOthersDidBeforeIt holds that nothing is lost of what somebody else does right before an own
// write, where no event shows the state in between: the operator acts on it though no handler looks at it.
func TestAListingThatShowsAnOwnWriteShowsWhatOthersDidBeforeIt(t *testing.T) {
	with := func(more func(foo *dsl.Resource, j *kit.Journal)) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sized", j.Note("sized", reportsLate), dsl.Field("spec.size"))
			more(foo, j)
		}
	}
	alone := with(func(*dsl.Resource, *kit.Journal) {})
	leaves := with(func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnDelete("left", j.Note("left"), dsl.Label("tier", "gold"))
	})
	scene.PlayAll(t, map[string]scene.Scenario{
		"nothing: the listing is the echo": {Operator: alone, Play: func(s *scene.Stage) {
			inListing(s, func(*scene.Stage) {})
			s.Called("sized update")
			before := passesOver(s)
			s.Advance(time.Hour)
			wantPasses(s, before)
			s.Resize(3)
			s.Advance(time.Minute)
			s.Called("sized update")
			wantStatusSize(s, 3)
		}},
		"a retry is asked for": {Operator: alone, Play: func(s *scene.Stage) {
			inListing(s, annotated("op.handwerk.dev/retry", "sized"))
			if notes := s.Web().GetAnnotations(); len(notes) > 0 {
				s.T.Errorf("annotations %v", notes)
			}
			wantStatusSize(s, 2)
			s.Forget()
		}},
		"the object is paused": {Operator: alone, Play: func(s *scene.Stage) {
			s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
			inListing(s, annotated("op.handwerk.dev/paused", "looking"))
			s.WantCondition("Paused", "True@2 Annotation: Operator op: looking")
			s.Forget()
			s.Resize(3)
			s.Advance(time.Minute)
			s.Called()
		}},
		"a delete handler comes to see the object": {Operator: leaves, Play: func(s *scene.Stage) {
			inListing(s, func(s *scene.Stage) { s.LabelTier("gold") })
			s.WantFinalizers(scene.Finalizer)
			s.Forget()
			s.Remove()
			s.Called("left delete")
			s.WantGone()
		}},
		"a delete handler sees the object no more": {Operator: leaves, Play: func(s *scene.Stage) {
			inListing(s, func(s *scene.Stage) {
				s.LabelTier("gold")
				s.ReleaseWatches(scene.Foos)
				s.Advance(10 * time.Second)
				s.WantFinalizers(scene.Finalizer)
				s.Resize(3)
				s.Settle()
				s.HoldWatches(scene.Foos)
				s.LabelTier("silver")
			})
			s.WantFinalizers()
			s.Forget()
		}},
		"the finalizer is taken off": {Operator: with(func(foo *dsl.Resource, j *kit.Journal) { foo.OnDelete("left", j.Note("left")) }), Play: func(s *scene.Stage) {
			inListing(s, func(s *scene.Stage) {
				s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			})
			s.WantFinalizers(scene.Finalizer)
			s.Forget()
		}},
		"the object is deleted": {Operator: with(func(foo *dsl.Resource, j *kit.Journal) { foo.OnDelete("left", j.Note("left")) }), Play: func(s *scene.Stage) {
			inListing(s, (*scene.Stage).Remove)
			s.Advance(time.Minute)
			s.WantGone()
			if calls := strings.Join(s.Take(), ", "); !strings.HasSuffix(calls, "left delete") {
				s.T.Errorf("the calls are %s", calls)
			}
		}},
		"another handler's field changes": {Operator: with(func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("colored", j.Note("colored"), dsl.Field("spec.color"))
		}), Play: func(s *scene.Stage) {
			inListing(s, func(s *scene.Stage) { s.Set("blue", "spec", "color") })
			s.Called("sized update", "colored update")
		}},
		"another handler's field changes back and forth": {Operator: with(func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("colored", j.Note("colored"), dsl.Field("spec.color"))
		}), Play: func(s *scene.Stage) {
			inListing(s, func(s *scene.Stage) {
				s.Set("blue", "spec", "color")
				s.Set("red", "spec", "color")
			})
			s.Called("sized update") // it has seen this color
		}},
		"another handler's filter comes to hold": {Operator: with(func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("gold", j.Note("gold"), dsl.Label("tier", "gold"))
		}), Play: func(s *scene.Stage) {
			inListing(s, func(s *scene.Stage) { s.LabelTier("gold") })
			s.Called("sized update", "gold create")
		}},
		"the book is overwritten": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "sized", j.Note("sized", reportsLate), dsl.Field("spec.size"))
		}, Play: func(s *scene.Stage) {
			inListing(s, annotated(scene.StateAnnotation, `{"handwerk":1}`))
			s.Called("sized update")
			s.Process.Restart()
			s.Advance(time.Minute)
			s.Called() // the progress is right, so nothing is new to the next process
		}},
	})
}

// TestAWebhookThatChangesAnOwnWriteIsSeen holds that the finalizer follows what a webhook makes of an own write.
func TestAWebhookThatChangesAnOwnWriteIsSeen(t *testing.T) {
	labels := func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("sized", j.Note("sized", func(_ context.Context, r *dsl.Request) error {
			r.Patch.Label("size", fmt.Sprint(scene.SizeOf(r.Object)))
			return nil
		}), dsl.Field("spec.size"))
		foo.OnDelete("left", j.Note("left"), dsl.Label("tier", "gold"))
	}
	tier := func(s *scene.Stage, size, tier string) (end func()) {
		return s.Rewrite(scene.Foos, func(o *unstructured.Unstructured) {
			if o.GetLabels()["size"] == size {
				o.SetLabels(map[string]string{"size": size, "tier": tier})
			}
		})
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"it labels the object, so that a delete handler sees it": {Operator: labels, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			defer tier(s, "2", "gold")()
			s.Forget()
			s.Resize(2)
			s.Advance(time.Minute)
			s.Called("sized update")
			s.WantFinalizers(scene.Finalizer)
			s.Remove()
			s.Called("left delete")
			s.WantGone()
		}},
		"it labels the object otherwise, so that none sees it": {Operator: labels, Play: func(s *scene.Stage) {
			s.Begin()
			s.LabelTier("gold")
			s.WantFinalizers(scene.Finalizer)
			defer tier(s, "2", "silver")()
			s.Forget()
			s.Resize(2)
			s.Advance(time.Minute)
			s.Called("sized update")
			s.WantFinalizers()
		}},
	})
}

// TestAnObjectThatIsMadeAgainIsNoEcho holds that another object of the name is new, though the watch shows neither the own write to the
// first one nor its deletion.
func TestAnObjectThatIsMadeAgainIsNoEcho(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("sized", sized(j)) }, Play: func(s *scene.Stage) {
		s.Begin()
		s.Advance(time.Minute)
		s.Forget()
		s.DelayNext("patch", scene.Foos+"/status", time.Second)
		s.Resize(2)
		s.Settle()
		s.HoldWatches(scene.Foos)
		s.Remove()
		s.Create(strings.Replace(scene.Web, "size: 1", "size: 2", 1))
		s.Advance(time.Minute)
		s.ExpireWatches(scene.Foos)
		s.ReleaseWatches(scene.Foos)
		s.Advance(time.Minute)
		s.Called("sized update", "sized create")
		wantStatusSize(s, 2)
	}})
}

// TestALostWriteIsFoundThoughTheOneBeforeItWasSeen restores the cluster to the state between the two writes of a reconcile. The cache has seen the
// first one, and nothing shows that the versions have gone back.
func TestALostWriteIsFoundThoughTheOneBeforeItWasSeen(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("sized", j.Note("sized", func(ctx context.Context, r *dsl.Request) error {
			r.Patch.Label("size", fmt.Sprint(scene.SizeOf(r.Object)))
			return scene.ReportsSize(ctx, r)
		}))
	}, Play: func(s *scene.Stage) {
		s.Begin()
		s.Advance(time.Minute)
		s.Forget()
		s.DelayNext("patch", scene.Foos+"/status", time.Second)
		s.Resize(2)
		s.Settle()
		s.HoldWatches(scene.Foos)
		restore := s.Backup()
		s.Advance(10 * time.Second)
		s.Wrote("patch foos/status default/web", "patch foos default/web")
		restore()
		s.WantField("metadata.labels.size", "1")
		s.ExpireWatches(scene.Foos)
		s.ReleaseWatches(scene.Foos)
		s.Advance(5 * time.Minute)
		s.Called("sized update", "sized update")
		s.WantField("metadata.labels.size", "2")
		wantStatusSize(s, 2)
	}})
}

// TestEchoesInPartialCaches holds that an own write costs one reconcile, too, where the cache holds a part of the object, and that another one's
// write beside it is seen.
func TestEchoesInPartialCaches(t *testing.T) {
	operators := map[string]func(foo *dsl.Resource, j *kit.Journal){
		"by what handlers say that they read": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sized", j.Note("sized", reportsLate), dsl.Reads("spec.size", "status.size"))
			foo.OnDelete("left", j.Note("left"), dsl.Label("tier", "gold"), dsl.Reads())
		},
		"by what the resource keeps": func(foo *dsl.Resource, j *kit.Journal) {
			foo.Keep = []dsl.Path{{"spec", "size"}, {"status", "size"}}
			foo.OnReconcile("sized", j.Note("sized", reportsLate), dsl.Field("spec.size"))
			foo.OnDelete("left", j.Note("left"), dsl.Label("tier", "gold"))
		},
	}
	for name, operator := range operators {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: operator, Play: func(s *scene.Stage) {
				s.Adjust = append(s.Adjust, func(e *engine.Settings) { e.Missed = nil }) // as in a cluster
				inListing(s, func(s *scene.Stage) { s.LabelTier("gold") })
				s.WantFinalizers(scene.Finalizer)
				wantStatusSize(s, 2)
				s.Forget()
				for i := range int64(3) {
					before := passesOver(s)
					s.Resize(i + 3)
					s.Advance(time.Minute)
					wantPasses(s, before+1)
					s.Called("sized update")
					wantStatusSize(s, i+3)
				}
			}})
		})
	}
}
