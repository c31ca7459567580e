// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	childapply "github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

const ourFinalizer = "law.handwerk.dev/finalizer"

// TestFinalizerBeforeSideEffects: the first handler asks the API server what the object has.
func TestFinalizerBeforeSideEffects(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]dsl.Option{"held": nil, "opted out": {dsl.NoFinalizer()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, found := newStage(t), make(chan []string, 1)
			s.play(t, func(r *dsl.Resource) {
				r.OnReconcile("level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
					live, err := plane.Dynamic().Resource(s.works.Name).Namespace(s.ns).Get(ctx, "w", metav1.GetOptions{})
					if err == nil {
						found <- live.GetFinalizers()
					}
					return err
				}))
				r.OnDelete("farewell", s.Note("farewell", nil), opts...)
			})
			s.works.Create(t, work("w", "a"))
			var want []string
			if opts == nil {
				want = []string{ourFinalizer}
			}
			if diff := cmp.Diff(want, <-found); diff != "" {
				t.Errorf("finalizers when the first handler runs (-want +got):\n%s", diff)
			}
			s.works.Delete(t, "w")
			s.works.AwaitGone(t, "w")
			s.Await(t, 1, "farewell", "w")
		})
	}
}

// TestDeletionInWatchGap: no event reports a deletion to the operator while it happens.
func TestDeletionInWatchGap(t *testing.T) {
	t.Parallel()
	gaps := map[string]func(*cluster.Proxy){
		"events come late":     func(*cluster.Proxy) {},
		"the watch ends":       func(p *cluster.Proxy) { p.CutWatches(cluster.On("watch", "works")) },
		"the watch is too old": func(p *cluster.Proxy) { p.ExpireWatches(cluster.On("watch", "works")) },
	}
	for gap, end := range gaps {
		for then, again := range map[string]bool{"gone": false, "made again": true} {
			t.Run(gap+", "+then, func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.play(t, func(r *dsl.Resource) {
					r.On(changes, "change", s.Note("change", nil))
					r.OnDelete("farewell", s.Note("farewell", nil), dsl.NoFinalizer())
				})
				first := s.works.Create(t, work("w", "a"))
				s.works.Await(t, "w", "its base", settled)
				s.quiesce(t, "change")
				hold := s.proxy.HoldWatches(cluster.On("watch", "works"))
				s.works.Delete(t, "w")
				want := []string{"farewell delete a " + string(first.GetUID())}
				if again {
					second := s.works.Create(t, work("w", "b"))
					want = append(want, "change create b "+string(second.GetUID()))
				}
				hold.Await(t, 1)
				end(s.proxy)
				hold.Release()
				s.Await(t, 1+len(want), "", "w")
				s.quiesce(t, "change")
				var got []string
				for _, c := range s.Of("", "w")[1:] {
					got = append(got, textOf(c)+" "+string(c.Object.GetUID()))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestForeignFinalizerIsLeft: ours goes, the object stays, and nothing is done again.
func TestForeignFinalizerIsLeft(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.play(t, func(r *dsl.Resource) {
		r.On(changes, "change", s.Note("change", nil))
		r.OnDelete("farewell", s.Note("farewell", nil))
	})
	w := work("w", "a")
	w.SetFinalizers([]string{"example.com/theirs"})
	s.works.Create(t, w)
	s.works.Await(t, "w", "its base", settled)
	mark := plane.Mark(t)
	s.works.Delete(t, "w")
	s.works.Await(t, "w", "our finalizer to go", func(o *unstructured.Unstructured) bool {
		return o.GetDeletionTimestamp() != nil && !slices.Contains(o.GetFinalizers(), ourFinalizer)
	})
	s.works.Patch(t, "w", `{"status":{"theirs":"x"}}`, "status")
	s.quiesce(t, "change")
	if diff := cmp.Diff([]string{"farewell delete a"}, s.said("farewell", "w")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{whole}, s.writes(t, mark, "w")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"example.com/theirs"}, s.works.Get(t, "w").GetFinalizers()); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	s.works.Patch(t, "w", `{"metadata":{"finalizers":null}}`)
	s.works.AwaitGone(t, "w")
}

// TestDeleteHandlerFailsForGood: by default the object is held, and says so, also after a restart;
// with the policy release it goes.
func TestDeleteHandlerFailsForGood(t *testing.T) {
	t.Parallel()
	define := func(s *stage, opts ...dsl.Option) func(*dsl.Resource) {
		return func(r *dsl.Resource) {
			r.On(changes, "change", s.Note("change", nil))
			r.OnDelete("farewell", s.Note("farewell", func(_ context.Context, r *dsl.Request) error {
				if r.Object.GetName() != "w" || spec(r.Object, "value") == "mended" {
					return nil
				}
				return dsl.Permanent(errors.New("no way"))
			}), opts...)
		}
	}
	event := func(t *testing.T, s *stage, of string) string {
		var note string
		waitFor(t, "the Event", func() bool {
			for _, e := range plane.Objects("events.v1.events.k8s.io", s.ns).List(t) {
				if reason, _, _ := unstructured.NestedString(e.Object, "reason"); reason == of {
					note, _, _ = unstructured.NestedString(e.Object, "note")
				}
			}
			return note != ""
		})
		return note
	}
	t.Run("hold", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		running := s.play(t, define(s))
		s.works.Create(t, work("w", "a"))
		s.works.Await(t, "w", "its base", settled)
		s.works.Delete(t, "w")
		if note := event(t, s, "DeletionHeld"); !containsAll(note, "Deletion is held", "farewell", "no way") {
			t.Errorf("the Event says %q", note)
		}
		s.works.Await(t, "w", "the failure to be stored", func(o *unstructured.Unstructured) bool {
			return strings.Contains(o.GetAnnotations()["law.handwerk.dev/state"], `"failed":true`)
		})
		running.Stop(t)
		s.play(t, define(s))
		s.quiesce(t, "change")
		if w := s.works.Get(t, "w"); w == nil || !slices.Contains(w.GetFinalizers(), ourFinalizer) {
			t.Error("the object is not held")
		}
		if n := len(s.Of("farewell", "w")); n != 1 {
			t.Errorf("the delete handler ran %d times, want 1", n)
		}
		s.works.Patch(t, "w", `{"spec":{"value":"mended"}}`)
		s.works.AwaitGone(t, "w")
	})
	t.Run("release", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.play(t, define(s, dsl.Release()))
		s.works.Create(t, work("w", "a"))
		s.works.Await(t, "w", "its base", settled)
		s.works.Delete(t, "w")
		s.works.AwaitGone(t, "w")
		if note := event(t, s, "HandlerFailed"); strings.Contains(note, "held") {
			t.Errorf("the Event says %q", note)
		}
	})
}

// TestWritesDoNotReachNamesake: what was meant for an object that is gone does not reach another
// one that has its name now.
func TestWritesDoNotReachNamesake(t *testing.T) {
	t.Parallel()
	status := dsl.NewPatch()
	status.SetStatus("value", "x")
	condition := dsl.NewPatch()
	condition.SetCondition("Ready", "True", "Done", "")
	object := dsl.NewPatch()
	object.Label("a", "b")
	finalizer := patch.Marks{Finalizer: ourFinalizer, Add: true}
	tests := map[string]func(context.Context, patch.Target) error{
		"status":      func(ctx context.Context, to patch.Target) error { return send(ctx, to, status, patch.Marks{}) },
		"a condition": func(ctx context.Context, to patch.Target) error { return send(ctx, to, condition, patch.Marks{}) },
		"the object":  func(ctx context.Context, to patch.Target) error { return send(ctx, to, object, patch.Marks{}) },
		"a finalizer": func(ctx context.Context, to patch.Target) error { return send(ctx, to, dsl.NewPatch(), finalizer) },
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			works := plane.Objects(works, plane.Namespace(t))
			old := works.Create(t, work("w", "a"))
			works.Delete(t, "w")
			now := works.Create(t, work("w", "a"))
			client := plane.Dynamic().Resource(works.Name).Namespace(works.Namespace)
			err := write(t.Context(), patch.Target{Client: client, Object: old, Subresource: true, Manager: "law"})
			if !errors.Is(err, patch.ErrGone) {
				t.Errorf("the write got %v, want %v", err, patch.ErrGone)
			}
			if diff := cmp.Diff(now, works.Get(t, "w")); diff != "" {
				t.Errorf("the namesake (-before +after):\n%s", diff)
			}
		})
	}
	t.Run("a child", func(t *testing.T) {
		t.Parallel()
		ns := plane.Namespace(t)
		maps, owner := plane.Objects(configMaps, ns), plane.Objects(works, ns).Create(t, work("w", "a"))
		of := ownership.Owner{Object: owner, Namespaced: true, Keys: ownership.KeysOf(dsl.New("law"))}
		desired, err := dsl.Object(configMap("c", "x"))
		if err != nil {
			t.Fatal(err)
		}
		if err := of.Complete(desired, true, dsl.ChildSpec{}); err != nil {
			t.Fatal(err)
		}
		old := maps.Create(t, desired)
		maps.Delete(t, "c")
		now := maps.Create(t, &unstructured.Unstructured{Object: configMap("c", "theirs")})
		if err := unstructured.SetNestedField(desired.Object, "y", "data", "value"); err != nil {
			t.Fatal(err)
		}
		applier := childapply.Applier{Owner: of, Manager: "law", Settled: &childapply.Settled{Memory: &childapply.SettledMemory{}}}
		_, sent, err := applier.Apply(t.Context(), plane.Dynamic().Resource(maps.Name).Namespace(ns), desired, old)
		if sent != "" || !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
			t.Errorf("deed %q, error %v", sent, err)
		}
		if diff := cmp.Diff(now, maps.Get(t, "c")); diff != "" {
			t.Errorf("the namesake (-before +after):\n%s", diff)
		}
	})
}

func send(ctx context.Context, to patch.Target, p *dsl.Patch, m patch.Marks) error {
	_, err := patch.Write(ctx, to, p, m)
	return err
}

// TestAnswerToForeignUID pins what the API server says to a patch that names another UID, on which
// [patch.Write] relies.
func TestAnswerToForeignUID(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	for resource, object := range map[string]*unstructured.Unstructured{works: work("o", "a"), configMaps: {Object: configMap("o", "a")}} {
		objects := plane.Objects(resource, ns)
		objects.Create(t, object)
		client := plane.Dynamic().Resource(objects.Name).Namespace(ns)
		_, err := client.Patch(t.Context(), "o", types.MergePatchType, []byte(`{"metadata":{"uid":"x","labels":{"a":"b"}}}`), metav1.PatchOptions{})
		if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: a merge patch got %v", resource, err)
		}
		t.Logf("%s: a merge patch got %s: %v", resource, apierrors.ReasonForError(err), err)
		applied := object.DeepCopy()
		applied.SetUID("x")
		_, err = client.Apply(t.Context(), "o", applied, metav1.ApplyOptions{FieldManager: "law", Force: true})
		if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: an apply got %v", resource, err)
		}
		t.Logf("%s: an apply got %s: %v", resource, apierrors.ReasonForError(err), err)
	}
}
