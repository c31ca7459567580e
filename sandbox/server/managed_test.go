// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/clock"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// TestManagedFieldsAreThoseOfTheLibrary writes objects at random, and holds the entries that are edited as they are against
// those of the library, which decodes and encodes all of them.
func TestManagedFieldsAreThoseOfTheLibrary(t *testing.T) {
	for _, typed := range []bool{true, false} {
		t.Run(fmt.Sprintf("the fields have types: %v", typed), func(t *testing.T) {
			for seed := range uint64(12) {
				synctest.Test(t, func(t *testing.T) { writeAtRandom(t, typed, rand.New(rand.NewPCG(seed, 1))) })
			}
		})
	}
}

func writeAtRandom(t *testing.T, typed bool, random *rand.Rand) {
	o := &ownership{strict: random.IntN(2) == 0, clock: clock.Real{}}
	on, stored := deployments(typed), (*unstructured.Unstructured)(nil)
	for step := range 25 {
		time.Sleep(time.Duration(random.IntN(2)) * time.Second)
		r := Request{agent: []string{"kubectl", "helm", "operator"}[random.IntN(3)], Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}}
		next := on.blank(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
		if stored != nil {
			next = stored.DeepCopy()
			if random.IntN(3) == 0 {
				r.Subresource = "status"
			}
		}
		for range 1 + random.IntN(3) {
			edit(next.Object, random)
		}
		if stored != nil && random.IntN(5) == 0 {
			stored = applyAtRandom(t, o, on, r, stored, next)
			continue
		}
		stored = both(t, o, on, r, stored, next, step)
	}
}

func deployments(typed bool) *table {
	return newTable(resource{
		group: "apps", versions: []string{"v1"}, plural: "deployments", kind: "Deployment", namespaced: true, status: true, typed: typed,
	}, 0)
}

// both returns next with the managedFields that it gets, and fails if they are not those of the library.
func both(t *testing.T, o *ownership, on *table, r Request, stored, next *unstructured.Unstructured, step int) *unstructured.Unstructured {
	t.Helper()
	m := o.managing(on, r)
	old := stored
	if old == nil {
		old = on.blank(m.kind)
	}
	before, got := old.DeepCopy(), next.DeepCopy()
	manager, err := m.manager(on, r)
	if err != nil {
		t.Fatal(err)
	}
	want := manager.UpdateNoErrors(old.DeepCopy(), next.DeepCopy(), r.manager()).(*unstructured.Unstructured)
	if !m.note(r, old, got) {
		t.Fatalf("step %d: the entries were not edited", step)
	}
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Fatalf("step %d, object (-library +edited):\n%s", step, diff)
	}
	if diff := cmp.Diff(before.Object, old.Object); diff != "" {
		t.Fatalf("step %d, the stored object was changed (-before +after):\n%s", step, diff)
	}
	got.SetUID(types.UID("u"))
	return got
}

// TestFirstApplyIsThatOfTheLibrary applies new objects, and holds what is stored against what the library makes of them.
func TestFirstApplyIsThatOfTheLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(60) {
			random := rand.New(rand.NewPCG(seed, 1))
			o, on := &ownership{strict: true, clock: clock.Real{}}, deployments(random.IntN(2) == 0)
			r := Request{agent: "helm"}
			m := o.managing(on, r)
			intent := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
			intent.SetGroupVersionKind(m.kind)
			for range random.IntN(9) {
				edit(intent.Object, random)
			}
			manager, err := m.manager(on, r)
			if err != nil {
				t.Fatal(err)
			}
			before := intent.DeepCopy()
			want, err := manager.Apply(on.blank(m.kind), intent.DeepCopy(), r.manager(), false)
			got := m.first(r, intent)
			switch {
			case err != nil && got == nil:
				continue
			case err != nil || got == nil:
				t.Fatalf("seed %d: the library says %v, and the object is %v", seed, err, got)
			}
			if diff := cmp.Diff(before.Object, intent.Object); diff != "" {
				t.Fatalf("seed %d: what is applied was changed (-before +after):\n%s", seed, diff)
			}
			if on.typed { // a schema is going to add what each object of its Go type has
				for _, u := range []*unstructured.Unstructured{got, want.(*unstructured.Unstructured)} {
					u.Object = map[string]any{"managedFields": u.Object["metadata"].(map[string]any)["managedFields"]}
				}
			}
			if diff := cmp.Diff(want.(*unstructured.Unstructured).Object, got.Object); diff != "" {
				t.Fatalf("seed %d, object (-library +server):\n%s", seed, diff)
			}
		}
	})
}

// applyAtRandom applies a part of an object.
func applyAtRandom(t *testing.T, o *ownership, on *table, r Request, stored, next *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	intent := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "a"}, "spec": next.Object["spec"]}
	r.Subresource, r.options = "", map[string][]string{"force": {"true"}}
	out, err := o.applied(on, r, stored, &unstructured.Unstructured{Object: intent})
	switch {
	case err == nil:
		return out
	case !strings.Contains(err.Error(), "duplicate entries"):
		t.Fatal(err)
	}
	return stored
}

// edit changes something in a Deployment.
func edit(o map[string]any, random *rand.Rand) {
	metadata, spec, status := below(o, "metadata"), below(o, "spec"), below(o, "status")
	pod := below(below(spec, "template"), "spec")
	n := random.IntN(3)
	name := []string{"a", "b", "c"}[n]
	switch random.IntN(16) {
	case 0:
		below(metadata, "labels")[name] = fmt.Sprint(random.IntN(3))
	case 1:
		delete(below(metadata, "labels"), name)
	case 2:
		metadata["labels"] = map[string]any{}
	case 3:
		delete(metadata, "labels")
	case 4:
		spec["replicas"] = int64(n)
	case 5:
		delete(spec, "replicas")
	case 6:
		metadata["finalizers"] = toggled(metadata["finalizers"], name, func(e any) bool { return e == name })
	case 7:
		reference := map[string]any{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name}
		metadata["ownerReferences"] = toggled(metadata["ownerReferences"], reference, named("uid", name))
	case 8, 9:
		pod["containers"] = toggled(pod["containers"], map[string]any{"name": name, "image": name + ":1"}, named("name", name))
	case 10, 11:
		editContainer(pod, name, random)
	case 12:
		below(pod, "nodeSelector")[name] = fmt.Sprint(random.IntN(3)) // it is atomic
	case 13:
		pod["tolerations"] = toggled(pod["tolerations"], map[string]any{"key": name}, named("key", name)) // they are, too
	case 14:
		status["replicas"] = int64(n)
	default:
		condition := map[string]any{"type": name, "status": []string{"True", "False"}[random.IntN(2)]}
		status["conditions"] = toggled(status["conditions"], condition, named("type", name))
	}
}

func editContainer(pod map[string]any, name string, random *rand.Rand) {
	containers, _ := pod["containers"].([]any)
	if len(containers) == 0 {
		return
	}
	c := containers[random.IntN(len(containers))].(map[string]any)
	switch random.IntN(5) {
	case 0:
		c["image"] = fmt.Sprint(name, ":", random.IntN(3))
	case 1:
		c["env"] = toggled(c["env"], map[string]any{"name": name, "value": name}, named("name", name))
	case 2:
		list, _ := c["env"].([]any)
		c["env"] = append(list, map[string]any{"name": name, "value": "again"}) // the name may be there twice
	case 3:
		port := int64(80 + random.IntN(2))
		c["ports"] = toggled(c["ports"], map[string]any{"containerPort": port, "protocol": "TCP", "name": name}, named("containerPort", port))
	case 4:
		c["args"] = []any{name}
	}
}

// below returns a map in a map.
func below(o map[string]any, key string) map[string]any {
	out, _ := o[key].(map[string]any)
	if out == nil {
		out = map[string]any{}
		o[key] = out
	}
	return out
}

// toggled returns a list with an entry, or without those that are like it.
func toggled(list, entry any, like func(any) bool) any {
	has, _ := list.([]any)
	out := []any{}
	for _, e := range has {
		if !like(e) {
			out = append(out, e)
		}
	}
	if len(out) == len(has) {
		out = append(out, entry)
	}
	return out
}

// named returns a function that knows entries by a field.
func named(key string, value any) func(any) bool {
	return func(entry any) bool { return entry.(map[string]any)[key] == value }
}
