// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

const services = "services.v1"

// family is desired children of three kinds, whose values the server rewrites or adds defaults.
var family = map[string]string{
	configMaps: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w-child"},"data":{"value":"x"}}`,
	services: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"w-child","labels":{"a":"b"}},
		"spec":{"selector":{"app":"w"},"ports":[{"name":"http","port":80}]}}`,
	deployments: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w-child"},"spec":{"replicas":0,
		"selector":{"matchLabels":{"app":"w"}},"template":{"metadata":{"labels":{"app":"w"}},"spec":{"containers":[
		{"name":"c","image":"i","resources":{"requests":{"cpu":"1000m","memory":"1024Mi"},"limits":{"cpu":2}}}]}}}}`,
}

// TestChildIsKept: what somebody changes of what is desired is put right with one request; what
// they add is theirs; a restart costs nothing.
func TestChildIsKept(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ resource, patch, path, want string }{
		"a ConfigMap, which has no generation": {configMaps, `{"data":{"value":"drifted","theirs":"x"}}`, "data.value", "x"},
		"a label of a Service":                 {services, `{"metadata":{"labels":{"a":"drifted","theirs":"x"}}}`, "metadata.labels.a", "b"},
		"the selector of a Service":            {services, `{"metadata":{"labels":{"theirs":"x"}},"spec":{"selector":{"app":"drifted"}}}`, "spec.selector.app", "w"},
		"a Deployment with quantities":         {deployments, `{"metadata":{"labels":{"theirs":"x"}},"spec":{"minReadySeconds":7,"template":{"metadata":{"labels":{"app":"w","more":"x"}}}}}`, "spec.template.metadata.labels.app", "w"},
		"quantities themselves":                {deployments, `{"metadata":{"labels":{"theirs":"x"}},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"3"}}}]}}}}`, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			desired := parse(t, family[test.resource])
			define := func(r *dsl.Resource) {
				r.Owns(test.resource)
				noted := s.Note("level") // once it has applied, or the drift may still be there
				r.OnReconcile("level", func(ctx context.Context, r *dsl.Request) error {
					if r.Object.GetName() == "w" {
						if _, err := r.Children.Apply(ctx, desired); err != nil {
							return err
						}
					}
					return noted(ctx, r)
				})
			}
			children := plane.Objects(test.resource, s.ns)
			running := s.play(t, define)
			mark := plane.Mark(t)
			s.works.Create(t, work("w", "a"))
			made := children.Await(t, "w-child", "being made", func(*unstructured.Unstructured) bool { return true })
			s.quiesce(t, "level")
			running.Stop(t)
			s.play(t, define)
			s.quiesce(t, "level")
			created := "patch " + children.Name.Resource + " w-child 201"
			if diff := cmp.Diff([]string{created}, s.writes(t, mark, "w")); diff != "" {
				t.Errorf("writes after the creation and a restart (-want +got):\n%s", diff)
			}
			mark = plane.Mark(t)
			drifted := children.Patch(t, "w-child", test.patch)
			if test.path != "" && equalAt(drifted, made, test.path) && test.resource != deployments {
				t.Fatal("the drift is none")
			}
			s.Await(t, 3, "level", "w")
			s.quiesce(t, "level")
			now := children.Get(t, "w-child")
			want := []string{"patch " + children.Name.Resource + " w-child 200"}
			if test.path == "spec.template.metadata.labels.app" {
				want = nil // everything desired is there still
			} else if test.path != "" {
				if got, _ := dsl.MustParsePath(test.path).In(now.Object); got != test.want {
					t.Errorf("%s is %v, want %q", test.path, got, test.want)
				}
			} else if diff := cmp.Diff(containers(made), containers(now)); diff != "" {
				t.Errorf("containers (-made +now):\n%s", diff)
			}
			if now.GetLabels()["theirs"] != "x" && test.resource != configMaps {
				t.Errorf("what is theirs was taken: %v", now.GetLabels())
			}
			if diff := cmp.Diff(want, s.writes(t, mark, "w")); diff != "" {
				t.Errorf("writes after the drift (-want +got):\n%s", diff)
			}
		})
	}
}

func equalAt(a, b *unstructured.Unstructured, path string) bool {
	p := dsl.MustParsePath(path)
	x, _ := p.In(a.Object)
	y, _ := p.In(b.Object)
	return cmp.Equal(x, y)
}

func containers(o *unstructured.Unstructured) any {
	list, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	return list
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := cluster.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return objects[0]
}

// TestFieldsNoLongerDesiredArePruned: those that no other manager has, and no others.
func TestFieldsNoLongerDesiredArePruned(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.play(t, func(r *dsl.Resource) {
		r.Owns(configMaps)
		r.OnReconcile("level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
			child := configMap("w-child", "x")
			if spec(r.Object, "value") == "a" {
				child["data"] = map[string]any{"value": "x", "more": "y"}
			}
			_, err := r.Children.Apply(ctx, child)
			return err
		}))
	})
	s.works.Create(t, work("w", "a"))
	s.maps.Await(t, "w-child", "being made", func(*unstructured.Unstructured) bool { return true })
	s.maps.Patch(t, "w-child", `{"data":{"theirs":"z"}}`)
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	want := map[string]any{"value": "x", "theirs": "z"}
	s.maps.Await(t, "w-child", "the field's end", func(o *unstructured.Unstructured) bool { return cmp.Equal(o.Object["data"], any(want)) })
}

// TestNothingIsAdopted: an object of the child's name that is not this owner's is left exactly as
// it is, whenever it came.
func TestNothingIsAdopted(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		object map[string]any
		amid   bool // whether it comes between the look and the apply
	}{
		"it was there, with the same content":      {configMap("w-child", "x"), false},
		"it was there, and is another's":           {configMap("w-child", "owned"), false},
		"it comes in between, with the same":       {configMap("w-child", "x"), true},
		"it comes in between, with something else": {configMap("w-child", "theirs"), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, refused := newStage(t), make(chan error, 100)
			var before *unstructured.Unstructured
			another := s.works.Create(t, work("another", "a"))
			create := func() {
				object := &unstructured.Unstructured{Object: test.object}
				if value, _, _ := unstructured.NestedString(test.object, "data", "value"); value == "owned" {
					object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(another, another.GroupVersionKind())})
				}
				before = s.maps.Create(t, object)
			}
			if test.amid {
				s.proxy.Inject(cluster.When{Match: cluster.On("patch", "configmaps"), Times: 1}, cluster.Before(func(cluster.Request) { create() }))
			} else {
				create()
			}
			s.play(t, func(r *dsl.Resource) {
				r.Owns(configMaps)
				r.OnReconcile("level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
					if r.Object.GetName() != "w" {
						return nil
					}
					_, err := r.Children.Apply(ctx, configMap("w-child", "x"))
					refused <- err
					return err
				}))
			})
			s.works.Create(t, work("w", "a"))
			if err := <-refused; !errors.Is(err, dsl.ErrNotOwned) {
				t.Errorf("applying got %v", err)
			}
			s.Await(t, 2, "level", "w")
			if err := <-refused; !errors.Is(err, dsl.ErrNotOwned) {
				t.Errorf("applying again got %v", err)
			}
			after := s.maps.Get(t, "w-child")
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the object (-before +after):\n%s", diff)
			}
		})
	}
}

// TestDeletedChildIsMadeAgain: the cache shows a deleted child still when it is wanted again.
func TestDeletedChildIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	running := s.play(t, func(r *dsl.Resource) {
		r.Owns(configMaps)
		r.OnChild("child", s.Note("child", nil))
		r.On(changes, "change", s.Note("change", func(ctx context.Context, r *dsl.Request) error {
			if spec(r.Object, "value") == "none" {
				return r.Children.Delete(ctx, configMaps, "w-child")
			}
			_, err := r.Children.Apply(ctx, configMap("w-child", "x"))
			return err
		}))
	})
	s.works.Create(t, work("w", "a"))
	s.works.Await(t, "w", "its base", settled)
	first := s.maps.Patch(t, "w-child", `{"data":{"theirs":"x"}}`)
	s.Await(t, 1, "child", "w") // so its creation has come through
	hold := s.proxy.HoldWatches(cluster.On("watch", "configmaps"))
	s.works.Patch(t, "w", `{"spec":{"value":"none"}}`)
	s.works.Await(t, "w", "its handling", func(o *unstructured.Unstructured) bool { return handledWith(o, "none") })
	s.works.Patch(t, "w", `{"spec":{"value":"a"}}`)
	awaitGauge(t, running, "handwerk_parked_keys", 1)
	if n := len(s.Of("change", "w")); n != 2 {
		t.Errorf("%d calls while the cache shows the deleted child, want 2", n)
	}
	hold.Release()
	s.maps.Await(t, "w-child", "being made again", func(o *unstructured.Unstructured) bool { return o.GetUID() != first.GetUID() })
}

// TestOthersWritesSurvive: somebody else writes to the same list between the operator's read and
// its write.
func TestOthersWritesSurvive(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var once sync.Once
	s.proxy.Inject(cluster.When{Match: func(r cluster.Request) bool {
		return cluster.On("patch", "works/status")(r) && r.Name == "w"
	}}, cluster.Before(func(cluster.Request) {
		once.Do(func() {
			s.works.Patch(t, "w", `{"status":{"theirs":"x","conditions":[{"type":"Theirs","status":"True"}]}}`, "status")
			s.works.Patch(t, "w", `{"metadata":{"finalizers":["example.com/theirs"]}}`)
		})
	}))
	s.play(t, func(r *dsl.Resource) {
		r.OnReconcile("level", s.Note("level", func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetStatus("ours", "y")
			r.Patch.SetCondition("Ours", metav1.ConditionTrue, "Done", "it is done")
			return nil
		}))
		r.OnDelete("farewell", s.Note("farewell", nil), dsl.When(func(r *dsl.Subject) (bool, error) {
			return status(r.Object, "ours") != "", nil // so that the finalizer comes with a later write
		}))
	})
	s.works.Create(t, work("w", "a"))
	s.works.Await(t, "w", "both to be there", func(o *unstructured.Unstructured) bool {
		return status(o, "theirs") == "x" && status(o, "ours") == "y" &&
			cluster.Condition(o, "Theirs") == "True" && cluster.Condition(o, "Ours") == "True"
	})
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	s.Await(t, 2, "level", "w")
	got := s.works.Await(t, "w", "both finalizers", func(o *unstructured.Unstructured) bool { return len(o.GetFinalizers()) == 2 })
	if diff := cmp.Diff([]string{"example.com/theirs", ourFinalizer}, got.GetFinalizers()); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	s.works.Patch(t, "w", `{"metadata":{"finalizers":["law.handwerk.dev/finalizer"]}}`)
}
