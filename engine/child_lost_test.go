// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// unlabel takes the owner's label off a child, and leaves the rest.
func unlabel(o *unstructured.Unstructured) {
	labels := o.GetLabels()
	delete(labels, ownerLabel)
	o.SetLabels(labels)
}

// removesAll is a delete handler that removes the owner's children and waits until they are gone.
func removesAll(ctx ctx, r *dsl.Request) error {
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
func keepsOnChange(foo *dsl.Resource, j *journal) {
	spec := dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	foo.Owns(configMaps)
	foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "keep", func(ctx ctx, r *dsl.Request) error {
		if _, err := r.Children.Apply(ctx, settings("elsewhere", "x"), spec); err != nil {
			j.Add(err.Error())
			return err
		}
		size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
		r.Patch.SetStatus("size", size)
		return nil
	}, dsl.Field("spec.size"))
	foo.OnDelete("leave", removesAll)
}

// leavesNothing deletes web, and checks that its child in namespace elsewhere goes with it.
func (s *stage) leavesNothing() {
	s.t.Helper()
	s.remove()
	s.Advance(3 * time.Minute)
	s.leftNothing()
}

// leftNothing checks that web and its child in namespace elsewhere are gone.
func (s *stage) leftNothing() {
	s.t.Helper()
	s.gone()
	if o := s.Get(configMaps, "elsewhere", "web"); o != nil {
		s.t.Errorf("the child is left behind: %v", o.Object["metadata"])
	}
}

// TestARecordOutlivesAFailedPass holds that a labelled child stays its owner's while the owner's annotation lists it, whatever
// happened to the label and to later requests of a pass.
func TestARecordOutlivesAFailedPass(t *testing.T) {
	fault := apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	begin := func(s *stage) {
		s.elsewhere()
		s.begin()
	}
	relabel := func(s *stage) {
		uid := string(s.web().GetUID())
		s.drift("elsewhere", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{ownerLabel: uid}) })
		s.Settle()
	}
	scenarios(t, map[string]scenario{
		"a label that is put back in a pass whose status is not written": {keepsOnChange, func(s *stage) {
			begin(s)
			s.drift("elsewhere", unlabel)
			s.Settle() // a pass that does not apply the child
			s.FailNext("patch", foos+"/status", fault)
			s.size(2)
			s.Advance(time.Minute)
			s.Called()
			s.leavesNothing()
		}},
		"a child that is made again in a pass whose status is not written": {keepsOnChange, func(s *stage) {
			begin(s)
			s.Delete(configMaps, "elsewhere", "web")
			s.Settle()
			s.FailNext("patch", foos+"/status", fault)
			s.size(2)
			s.Advance(time.Minute)
			s.Called()
			s.leavesNothing()
		}},
		"a label that somebody takes off and puts on": {keepsOnChange, func(s *stage) {
			begin(s)
			s.drift("elsewhere", unlabel)
			s.Settle()
			relabel(s)
			s.size(2)
			s.Advance(time.Minute)
			s.Called()
			s.leavesNothing()
		}},
		"a label that somebody takes off, and puts on after the owner was written": {
			func(foo *dsl.Resource, j *journal) {
				keepsOnChange(foo, j)
				notesColor(foo)
			}, func(s *stage) {
				begin(s)
				s.drift("elsewhere", unlabel)
				s.set("blue", "spec", "color")
				s.Settle()
				relabel(s)
				s.size(2)
				s.Advance(time.Minute)
				s.Called()
				s.leavesNothing()
			},
		},
	})
}

// notesColor adds a handler that writes to the object when its color changes.
func notesColor(foo *dsl.Resource) {
	foo.OnField("spec.color", "note", func(_ ctx, r *dsl.Request) error {
		color, _ := dsl.MustParsePath("spec.color").In(r.Object.Object)
		r.Patch.Annotate("example.com/color", color.(string))
		return nil
	})
}

// TestAnOldCacheSaysNothingOfWhatIsAbsent holds that a child which its cache does not show yet stays in its owner's record, however
// long nothing tells of it.
func TestAnOldCacheSaysNothingOfWhatIsAbsent(t *testing.T) {
	operator := func(foo *dsl.Resource, j *journal) {
		keepsOnChange(foo, j)
		notesColor(foo)
	}
	// made makes the child while its watch brings nothing.
	made := func(s *stage) {
		s.elsewhere()
		s.Launch()
		s.HoldWatches(configMaps)
		s.Create(web)
		s.value("elsewhere", "x")
		s.Advance(10 * time.Second) // a watch that ends sooner is begun with a list
	}
	noted := func(s *stage, color string) {
		s.t.Helper()
		if got := s.web().GetAnnotations()["example.com/color"]; got != color {
			s.t.Errorf("the object was last written for color %q, want %q", got, color)
		}
	}
	scenarios(t, map[string]scenario{
		"the watch is away for long, and the owner is written": {operator, func(s *stage) {
			made(s)
			s.unseen(configMaps)
			s.Advance(time.Minute)
			s.set("blue", "spec", "color")
			s.Advance(time.Minute)
			noted(s, "blue")
			s.seen(configMaps)
			s.ReleaseWatches(configMaps)
			s.Advance(time.Minute)
			s.leavesNothing()
		}},
		"the owner is deleted while the watch is away": {operator, func(s *stage) {
			made(s)
			s.unseen(configMaps)
			s.Advance(time.Minute)
			s.set("blue", "spec", "color")
			s.Advance(time.Minute)
			s.remove()
			s.Advance(5 * time.Minute)
			s.seen(configMaps)
			s.ReleaseWatches(configMaps)
			s.leavesNothing()
		}},
		"the watch is back, and has not told yet what it missed": {operator, func(s *stage) {
			made(s)
			end := s.FailWhile("watch", configMaps, apierrors.NewTooManyRequests("later", 1))
			s.CutWatches(configMaps)
			s.Advance(time.Minute)
			s.set("blue", "spec", "color")
			s.Advance(time.Minute)
			noted(s, "blue")
			end()
			s.Advance(time.Minute)
			s.set("green", "spec", "color")
			s.Advance(10 * time.Second)
			noted(s, "blue")
			s.ReleaseWatches(configMaps)
			s.Advance(time.Second)
			noted(s, "green")
			s.leavesNothing()
		}},
		"the owner is deleted when the watch is back, and has not told yet what it missed": {operator, func(s *stage) {
			made(s)
			end := s.FailWhile("watch", configMaps, apierrors.NewTooManyRequests("later", 1))
			s.CutWatches(configMaps)
			s.Advance(time.Minute)
			s.set("blue", "spec", "color")
			s.Advance(time.Minute)
			end()
			s.Advance(time.Minute)
			s.remove()
			s.Advance(10 * time.Second) // the owner may go now: a watch that was cut asks for the newest version, and lists
			s.ReleaseWatches(configMaps)
			s.Advance(3 * time.Minute)
			s.leftNothing()
		}},
	})
}

// TestACopiedRecordGoes holds that an object which has the record of another one loses it with its next write, and that this takes
// no write of its own.
func TestACopiedRecordGoes(t *testing.T) {
	labelled := dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	operator := grows(labelled, "elsewhere")
	begin := func(s *stage) {
		s.elsewhere()
		s.begin()
	}
	// other is an object without children, with these annotations.
	other := func(s *stage, annotations map[string]string) {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"size": int64(0), "color": "red"},
		}}
		o.SetName("copy")
		o.SetAnnotations(annotations)
		s.Create(o)
	}
	lacksRecord := func(s *stage) {
		s.t.Helper()
		if text, has := s.Get(foos, "default", "copy").GetAnnotations()[record]; has {
			s.t.Errorf("the record of another object is left on the copy: %s", text)
		}
		if s.listed() == "" {
			s.t.Error("the record is gone from the object that it is about")
		}
	}
	scenarios(t, map[string]scenario{
		"with the first write to the copy": {operator, func(s *stage) {
			begin(s)
			other(s, s.web().GetAnnotations())
			s.Called("keep create")
			s.Wrote("patch foos default/copy", "patch foos default/copy") // its finalizer, and what was handled
			lacksRecord(s)
		}},
		"where it is put on a handled object, with the next write": {operator, func(s *stage) {
			begin(s)
			other(s, nil)
			s.Forget()
			s.Update(foos, "default", "copy", func(o *unstructured.Unstructured) {
				annotations := o.GetAnnotations()
				annotations[record] = s.web().GetAnnotations()[record]
				o.SetAnnotations(annotations)
			})
			s.Called()
			s.Wrote()
			s.Update(foos, "default", "copy", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{"size": int64(0), "color": "blue"}
			})
			s.Called("keep update", " ") // it lists no children
			s.Wrote("patch foos default/copy")
			lacksRecord(s)
		}},
		"after a write without an answer": {operator, func(s *stage) {
			begin(s)
			s.FailNext("patch", foos, errors.New("connection refused"))
			other(s, s.web().GetAnnotations())
			s.Advance(time.Minute)
			s.Update(foos, "default", "copy", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{"size": int64(0), "color": "blue"}
			})
			s.Settle()
			lacksRecord(s)
		}},
		"and the copy can have a record of its own after that": {operator, func(s *stage) {
			begin(s)
			other(s, s.web().GetAnnotations())
			s.Settle()
			lacksRecord(s)
			s.Delete(foos, "default", "web")
			s.Advance(3 * time.Minute)
			s.Update(foos, "default", "copy", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{"size": int64(1), "color": "red"}
			})
			s.Settle()
			if uid := string(s.Get(foos, "default", "copy").GetUID()); s.value("elsewhere", "x").GetLabels()[ownerLabel] != uid {
				s.t.Error("the child is not the copy's")
			}
			s.Delete(foos, "default", "copy")
			s.Advance(3 * time.Minute)
			if o := s.Get(configMaps, "elsewhere", "web"); o != nil || s.Get(foos, "default", "copy") != nil {
				s.t.Errorf("the copy or its child is left behind: %v", o)
			}
		}},
	})
}
