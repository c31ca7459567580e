// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// fleet has children that depend on each other, that are there or not, one for each of a list, and
// one in another namespace.
const fleet = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: op}
resources:
  - resource: foos.v1.example.com
    handlers:
      - id: parts
        apply:
          settings:
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: "${self.metadata.name}-${self.spec.color}"}
            data: {color: "${self.spec.color}", size: "${string(self.spec.size)}"}
          web:
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: "${self.metadata.name}", labels: {settings: "${children.settings.metadata.name}"}}
            spec: {replicas: "${self.spec.size}", paused: "${children.settings.data.color == 'red'}"}
          front:
            includeWhen: self.spec.size > 2
            template:
              apiVersion: v1
              kind: Service
              metadata: {name: "${children.web.metadata.name}"}
              spec: {selector: {settings: "${children.web.metadata.labels.settings}"}}
          user:
            forEach: ${self.spec.users}
            template:
              apiVersion: v1
              kind: Secret
              metadata: {name: "${self.metadata.name}-${item}"}
              data: {color: "${base64(self.spec.color)}"}
          abroad:
            ownership: labelled
            includeWhen: self.spec.color != 'blue'
            template:
              apiVersion: v1
              kind: ConfigMap
              metadata: {name: "${self.metadata.namespace}-${self.metadata.name}", namespace: abroad}
              data: {users: "${self.spec.users.join(',')}"}
      - id: report
        set:
          status:
            users: "${children.user.map(u, u.metadata.name)}"
            settings: "${children.settings.?metadata.?name.orValue('')}"
`

// kinds are what fleet makes.
var kinds = []string{"configmaps.v1", "deployments.v1.apps", "services.v1", "secrets.v1"}

// spec is a random spec.
func spec(r *rand.Rand) map[string]any {
	users := []any{}
	for _, name := range []string{"ann", "bob", "cid", "dot"} {
		if r.IntN(2) == 0 {
			users = append(users, name)
		}
	}
	colors := []string{"red", "green", "blue"}
	return map[string]any{"size": int64(r.IntN(5)), "color": colors[r.IntN(len(colors))], "users": users}
}

// fleetRun is one life of one object.
type fleetRun struct {
	*kit.Cluster
	t *testing.T
	r *rand.Rand
	p *kit.Process
}

func runFleet(t *testing.T, seed uint64, play func(f *fleetRun)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		c.Create("{apiVersion: v1, kind: Namespace, metadata: {name: abroad}}")
		f := &fleetRun{Cluster: c, t: t, r: rand.New(rand.NewPCG(seed, 1))}
		op, err := config.Parse("fleet.yaml", []byte(fleet), handlers.Standard())
		if err != nil {
			t.Fatal(err)
		}
		f.p = c.Start(op)
		play(f)
	})
}

// wants gives web a spec, making it first if need be.
func (f *fleetRun) wants(spec map[string]any) {
	f.t.Helper()
	if f.Get(scene.Foos, "default", "web") == nil {
		f.Create(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Foo",
			"metadata": map[string]any{"name": "web", "namespace": "default"}, "spec": spec,
		})
		return
	}
	f.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.Object["spec"] = spec })
}

// disturb does one of the things that happen.
func (f *fleetRun) disturb() {
	f.t.Helper()
	switch f.r.IntN(8) {
	case 0, 1:
		f.wants(spec(f.r))
	case 2:
		if resource, o := f.child(); o != nil {
			f.Delete(resource, o.GetNamespace(), o.GetName())
		}
	case 3:
		if resource, o := f.child(); o != nil {
			f.Update(resource, o.GetNamespace(), o.GetName(), meddle)
		}
	case 4:
		verb := []string{"create", "patch", "delete"}[f.r.IntN(3)]
		resource := kinds[f.r.IntN(len(kinds))]
		f.FailNext(verb, resource, apierrors.NewInternalError(fmt.Errorf("no")), apierrors.NewTooManyRequests("later", 1))
	case 5:
		f.p.CrashAfter(1 + f.r.IntN(4))
		f.wants(spec(f.r))
		f.Settle()
		f.p.Kill()
		f.p.Restart()
	case 6:
		f.p.Restart()
	case 7:
		f.Advance(time.Duration(f.r.IntN(5000)) * time.Millisecond)
	}
	if f.r.IntN(2) == 0 {
		f.Settle()
	}
}

// meddle changes what a child says, in the fields that the operator sets: others it leaves alone.
func meddle(o *unstructured.Unstructured) {
	set := func(value any, path ...string) {
		if _, has, _ := unstructured.NestedFieldNoCopy(o.Object, path...); has {
			_ = unstructured.SetNestedField(o.Object, value, path...) // it has the field
		}
	}
	set("of somebody else", "metadata", "labels", "settings")
	set(int64(99), "spec", "replicas")
	set("none", "spec", "selector", "settings")
	for _, key := range []string{"color", "users", "size"} {
		set("cGluaw==", "data", key)
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "op.handwerk.dev/applied")
}

// child picks one of the children that there are, at a moment when no handler takes them away.
func (f *fleetRun) child() (resource string, o *unstructured.Unstructured) {
	f.Settle()
	for _, i := range f.r.Perm(len(kinds)) {
		for _, ns := range []string{"default", "abroad"} {
			if all := f.List(kinds[i], ns); len(all) > 0 {
				return kinds[i], all[f.r.IntN(len(all))]
			}
		}
	}
	return "", nil
}

// rest lets everything come to its end and returns what there is then, without what says who made
// it and when. From then on nothing is written.
func (f *fleetRun) rest() string {
	f.t.Helper()
	f.Advance(30 * time.Minute)
	f.p.Writes()
	f.Advance(2 * time.Hour)
	f.p.Restart()
	f.Advance(time.Minute)
	for _, w := range f.p.Writes() {
		f.t.Errorf("at rest there was a write: %s", w)
	}
	var out []string
	for _, resource := range append(slices.Clone(kinds), scene.Foos) {
		for _, ns := range []string{"default", "abroad"} {
			for _, o := range f.List(resource, ns) {
				out = append(out, content(f.t, o))
			}
		}
	}
	return strings.Join(out, "\n")
}

// content is an object without what differs from one life to another.
func content(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", key)
	}
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	delete(labels, "op.handwerk.dev/owner")
	delete(annotations, "op.handwerk.dev/applied")
	delete(annotations, scene.RecordAnnotation) // it has been there since there was a labelled child
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
	}
	if refs := o.GetOwnerReferences(); len(refs) > 0 {
		refs[0].UID = ""
		o.SetOwnerReferences(refs)
	}
	text, err := json.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWhateverHappenedTheLastSpecDecides holds that after any sequence of changes, edits, deletions,
// failures and crashes there is what the last spec alone would have made.
func TestWhateverHappenedTheLastSpecDecides(t *testing.T) {
	for seed := range uint64(scene.RandomLives) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			var after, alone string
			last := spec(rand.New(rand.NewPCG(seed, 2)))
			runFleet(t, seed, func(f *fleetRun) {
				f.wants(spec(f.r))
				for range 5 + f.r.IntN(20) {
					f.disturb()
				}
				f.wants(last)
				after = f.rest()
			})
			runFleet(t, seed, func(f *fleetRun) {
				f.wants(last)
				alone = f.rest()
			})
			if diff := cmp.Diff(strings.Split(alone, "\n"), strings.Split(after, "\n")); diff != "" {
				t.Errorf("for %v (-alone +after all that happened):\n%s", last, diff)
			}
		})
	}
}

// TestGoingBackToAnEarlierSpecGivesTheEarlierState holds that what was made leaves nothing behind.
func TestGoingBackToAnEarlierSpecGivesTheEarlierState(t *testing.T) {
	for seed := range uint64(scene.RandomLives / 3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			runFleet(t, seed, func(f *fleetRun) {
				first := spec(f.r)
				f.wants(first)
				before := f.rest()
				f.wants(spec(f.r))
				f.rest()
				f.wants(first)
				if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(f.rest(), "\n")); diff != "" {
					t.Errorf("for %v (-before +after):\n%s", first, diff)
				}
			})
		})
	}
}
