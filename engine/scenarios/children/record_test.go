// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// unlabel takes the owner's label off a child, and leaves the rest.
func unlabel(o *unstructured.Unstructured) {
	labels := o.GetLabels()
	delete(labels, ownerLabel)
	o.SetLabels(labels)
}

// removesAll is a delete handler that removes the owner's children and waits until they are gone.
func removesAll(ctx context.Context, r *dsl.Request) error {
	all, err := r.Children.All()
	if err != nil {
		return err
	}
	for _, c := range all {
		if err := r.Children.Remove(ctx, c); err != nil {
			return err
		}
	}
	if len(all) > 0 {
		return dsl.Waiting("children to be gone", 0)
	}
	return nil
}

// keepsOnChange returns an operator that applies a labelled ConfigMap when the object is new or changes, not when the child does,
// and sets the status. Its journal has why the child could not be applied.
func keepsOnChange(foo *dsl.Resource, j *kit.Journal) {
	spec := dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	foo.Owns(scene.ConfigMaps)
	foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "keep", func(ctx context.Context, r *dsl.Request) error {
		if _, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("elsewhere", "x"), spec); err != nil {
			j.Add(err.Error())
			return err
		}
		size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
		r.Patch.SetStatus("size", size)
		return nil
	}, dsl.Field("spec.size"))
	foo.OnDelete("leave", removesAll)
}

// removeWithChild deletes web, and checks that its child in namespace elsewhere goes with it.
func removeWithChild(s *scene.Stage) {
	s.T.Helper()
	s.Remove()
	s.Advance(3 * time.Minute)
	wantOwnerAndChildGone(s)
}

// wantOwnerAndChildGone checks that web and its child in namespace elsewhere are gone.
func wantOwnerAndChildGone(s *scene.Stage) {
	s.T.Helper()
	s.WantGone()
	if o := s.Get(scene.ConfigMaps, "elsewhere", "web"); o != nil {
		s.T.Errorf("the child is left behind: %v", o.Object["metadata"])
	}
}

// TestARecordOutlivesAFailedPass holds that a labelled child stays its owner's while the owner's annotation lists it, whatever
// happened to the label and to later requests of a reconcile.
func TestARecordOutlivesAFailedPass(t *testing.T) {
	fault := apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	begin := func(s *scene.Stage) {
		s.CreateElsewhere()
		s.Begin()
	}
	relabel := func(s *scene.Stage) {
		uid := string(s.Web().GetUID())
		s.ChangeConfigMap("elsewhere", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{ownerLabel: uid}) })
		s.Settle()
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a label that is put back in a pass whose status is not written": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			begin(s)
			s.ChangeConfigMap("elsewhere", unlabel)
			s.Settle() // a reconcile that does not apply the child
			s.FailNext("patch", scene.Foos+"/status", fault)
			s.Resize(2)
			s.Advance(time.Minute)
			s.Called()
			removeWithChild(s)
		}},
		"a child that is made again in a pass whose status is not written": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			begin(s)
			s.Delete(scene.ConfigMaps, "elsewhere", "web")
			s.Settle()
			s.FailNext("patch", scene.Foos+"/status", fault)
			s.Resize(2)
			s.Advance(time.Minute)
			s.Called()
			removeWithChild(s)
		}},
		"a label that somebody takes off and puts on": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			begin(s)
			s.ChangeConfigMap("elsewhere", unlabel)
			s.Settle()
			relabel(s)
			s.Resize(2)
			s.Advance(time.Minute)
			s.Called()
			removeWithChild(s)
		}},
		"a label that somebody takes off, and puts on after the owner was written": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				keepsOnChange(foo, j)
				notesColor(foo)
			}, Play: func(s *scene.Stage) {
				begin(s)
				s.ChangeConfigMap("elsewhere", unlabel)
				s.Set("blue", "spec", "color")
				s.Settle()
				relabel(s)
				s.Resize(2)
				s.Advance(time.Minute)
				s.Called()
				removeWithChild(s)
			},
		},
	})
}

// notesColor adds a handler that writes to the object when its color changes.
func notesColor(foo *dsl.Resource) {
	foo.OnField("spec.color", "note", func(_ context.Context, r *dsl.Request) error {
		color, _ := dsl.MustParsePath("spec.color").In(r.Object.Object)
		r.Patch.Annotate("example.com/color", color.(string))
		return nil
	})
}

// TestAnOldCacheDropsNoChildFromTheRecord holds that a child which its cache does not show yet stays in its owner's inventory,
// however long no event reports it.
func TestAnOldCacheDropsNoChildFromTheRecord(t *testing.T) {
	operator := func(foo *dsl.Resource, j *kit.Journal) {
		keepsOnChange(foo, j)
		notesColor(foo)
	}
	// made makes the child while its watch brings nothing.
	made := func(s *scene.Stage) {
		s.CreateElsewhere()
		s.Launch()
		s.HoldWatches(scene.ConfigMaps)
		s.Create(scene.Web)
		wantValue(s, "elsewhere", "x")
		s.Advance(10 * time.Second) // a watch that ends sooner is begun with a list
	}
	noted := func(s *scene.Stage, color string) {
		s.T.Helper()
		if got := s.Web().GetAnnotations()["example.com/color"]; got != color {
			s.T.Errorf("the object was last written for color %q, want %q", got, color)
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the watch is away for long, and the owner is written": {Operator: operator, Play: func(s *scene.Stage) {
			made(s)
			s.ForbidWatching(scene.ConfigMaps)
			s.Advance(time.Minute)
			s.Set("blue", "spec", "color")
			s.Advance(time.Minute)
			noted(s, "blue")
			s.AllowWatching(scene.ConfigMaps)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			removeWithChild(s)
		}},
		"the owner is deleted while the watch is away": {Operator: operator, Play: func(s *scene.Stage) {
			made(s)
			s.ForbidWatching(scene.ConfigMaps)
			s.Advance(time.Minute)
			s.Set("blue", "spec", "color")
			s.Advance(time.Minute)
			s.Remove()
			s.Advance(5 * time.Minute)
			s.AllowWatching(scene.ConfigMaps)
			s.ReleaseWatches(scene.ConfigMaps)
			removeWithChild(s)
		}},
		"the watch is back, and has not reported yet what it missed": {Operator: operator, Play: func(s *scene.Stage) {
			made(s)
			end := s.FailWhile("watch", scene.ConfigMaps, apierrors.NewTooManyRequests("later", 1))
			s.CutWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			s.Set("blue", "spec", "color")
			s.Advance(time.Minute)
			noted(s, "blue")
			end()
			s.Advance(time.Minute)
			s.Set("green", "spec", "color")
			s.Advance(10 * time.Second)
			noted(s, "blue")
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Second)
			noted(s, "green")
			removeWithChild(s)
		}},
		"the owner is deleted when the watch is back, and has not reported yet what it missed": {Operator: operator, Play: func(s *scene.Stage) {
			made(s)
			end := s.FailWhile("watch", scene.ConfigMaps, apierrors.NewTooManyRequests("later", 1))
			s.CutWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			s.Set("blue", "spec", "color")
			s.Advance(time.Minute)
			end()
			s.Advance(time.Minute)
			s.Remove()
			s.Advance(10 * time.Second) // the owner may go now: a watch that was cut asks for the newest version, and lists
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(3 * time.Minute)
			wantOwnerAndChildGone(s)
		}},
	})
}

// TestARecordThatSomebodyRemovesIsLogged holds that a child which nobody takes care of any more is named in the log.
func TestARecordThatSomebodyRemovesIsLogged(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: keepsOnChange, Play: func(s *scene.Stage) {
		s.CreateElsewhere()
		log := scene.LaunchWithLog(s, "taken children out of the inventory")
		s.Create(scene.Web)
		s.WantLines(log)
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
			notes := o.GetAnnotations()
			delete(notes, scene.RecordAnnotation)
			o.SetAnnotations(notes)
		})
		s.Settle()
		lines := log()
		if len(lines) != 1 || !strings.Contains(lines[0], "ConfigMap elsewhere/web") {
			s.T.Errorf("the log has %q", lines)
		}
	}})
}

// TestACopiedRecordGoes holds that an object which has the record of another one loses it with its next write, and that this
// takes no write of its own.
func TestACopiedRecordGoes(t *testing.T) {
	labelled := dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	operator := keepsInNamespaces(labelled, "elsewhere")
	begin := func(s *scene.Stage) {
		s.CreateElsewhere()
		s.Begin()
	}
	// other is an object without children, with these annotations.
	other := func(s *scene.Stage, annotations map[string]string) {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"size": int64(0), "color": "red"},
		}}
		o.SetName("copy")
		o.SetAnnotations(annotations)
		s.Create(o)
	}
	lacksRecord := func(s *scene.Stage) {
		s.T.Helper()
		if text, has := s.Get(scene.Foos, "default", "copy").GetAnnotations()[scene.RecordAnnotation]; has {
			s.T.Errorf("the record of another object is left on the copy: %s", text)
		}
		if listedInRecord(s) == "" {
			s.T.Error("the record is gone from the object that it is about")
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"with the first write to the copy": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			other(s, s.Web().GetAnnotations())
			s.Called("keep create")
			s.Wrote("patch foos default/copy", "patch foos default/copy") // its finalizer, and what was handled
			lacksRecord(s)
		}},
		"where it is put on a handled object, with the next write": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			other(s, nil)
			s.Forget()
			s.Update(scene.Foos, "default", "copy", func(o *unstructured.Unstructured) {
				annotations := o.GetAnnotations()
				annotations[scene.RecordAnnotation] = s.Web().GetAnnotations()[scene.RecordAnnotation]
				o.SetAnnotations(annotations)
			})
			s.Called()
			s.Wrote()
			s.Update(scene.Foos, "default", "copy", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{"size": int64(0), "color": "blue"}
			})
			s.Called("keep update", " ") // it lists no children
			s.Wrote("patch foos default/copy")
			lacksRecord(s)
		}},
		"after a write without an answer": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			s.FailNext("patch", scene.Foos, errors.New("connection refused"))
			other(s, s.Web().GetAnnotations())
			s.Advance(time.Minute)
			s.Update(scene.Foos, "default", "copy", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{"size": int64(0), "color": "blue"}
			})
			s.Settle()
			lacksRecord(s)
		}},
		"and the copy can have a record of its own after that": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			other(s, s.Web().GetAnnotations())
			s.Settle()
			lacksRecord(s)
			s.Delete(scene.Foos, "default", "web")
			s.Advance(3 * time.Minute)
			s.Update(scene.Foos, "default", "copy", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{"size": int64(1), "color": "red"}
			})
			s.Settle()
			if uid := string(s.Get(scene.Foos, "default", "copy").GetUID()); wantValue(s, "elsewhere", "x").GetLabels()[ownerLabel] != uid {
				s.T.Error("the child is not the copy's")
			}
			s.Delete(scene.Foos, "default", "copy")
			s.Advance(3 * time.Minute)
			if o := s.Get(scene.ConfigMaps, "elsewhere", "web"); o != nil || s.Get(scene.Foos, "default", "copy") != nil {
				s.T.Errorf("the copy or its child is left behind: %v", o)
			}
		}},
	})
}
