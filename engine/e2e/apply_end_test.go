// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// chain are children in two namespaces; each one needs the one before.
const chain = `
a:
  ownership: labelled
  includeWhen: self.spec.value != 'none'
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-a", namespace: OTHER}}
b:
  ownership: labelled
  includeWhen: self.spec.value != 'none'
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-b", annotations: {needs: "${children.a.metadata.name}"}}}
c:
  ownership: labelled
  includeWhen: self.spec.value != 'none'
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-c", namespace: OTHER, annotations: {needs: "${children.b.metadata.name}"}}}
`

func going(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil }

// links are the children of the chain of the work w.
type links struct {
	names   []string
	objects []*cluster.Objects
}

func linksOf(ns, other string) links {
	here, there := plane.Objects(configMaps, ns), plane.Objects(configMaps, other)
	return links{[]string{"w-a", "w-b", "w-c"}, []*cluster.Objects{there, here, there}}
}

// hold gives each a finalizer.
func (l links) hold(t *testing.T) {
	t.Helper()
	for i, name := range l.names {
		l.objects[i].Await(t, name, "being made", there)
		l.objects[i].Patch(t, name, `{"metadata":{"finalizers":["e2e.example.com/slow"]}}`)
	}
}

// mustGo waits until one is being deleted, and fails the test if those before it are.
func (l links) mustGo(t *testing.T, at int) {
	t.Helper()
	l.objects[at].Await(t, l.names[at], "its deletion", going)
	for i := range at {
		if going(l.objects[i].Get(t, l.names[i])) {
			t.Errorf("%s goes before %s is gone, which needs it", l.names[i], l.names[at])
		}
	}
}

// free lets one go, and waits until it is gone.
func (l links) free(t *testing.T, at int) {
	t.Helper()
	l.objects[at].Patch(t, l.names[at], `{"metadata":{"finalizers":null}}`)
	l.objects[at].AwaitGone(t, l.names[at])
}

// TestApplyEndsInReverse: what is tied by a label goes in the order in which nothing loses what it
// needs, over two namespaces, and holds its owner until it is gone.
func TestApplyEndsInReverse(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *applyStage, links){
		"when the owner is deleted":    func(t *testing.T, s *applyStage, _ links) { s.works.Delete(t, "w") },
		"when they are wanted no more": func(t *testing.T, s *applyStage, _ links) { s.works.Patch(t, "w", `{"spec":{"value":"none"}}`) },
		"when deletion follows on pruning": func(t *testing.T, s *applyStage, l links) {
			s.works.Patch(t, "w", `{"spec":{"value":"none"}}`)
			l.mustGo(t, 2)
			s.works.Delete(t, "w")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := plane.Namespace(t)
			s := newApplyStage(t, []string{other}, made("", "configmaps"))
			s.run(t, strings.ReplaceAll(beside+chain, "OTHER", other), other)
			s.works.Create(t, work("w", other))
			s.applied(t, "w")
			l := linksOf(s.ns, other)
			l.hold(t)
			end(t, s, l)
			for _, at := range []int{2, 1, 0} {
				l.mustGo(t, at)
				if s.works.Get(t, "w") == nil {
					t.Error("the owner is gone before its children")
				}
				l.free(t, at)
			}
			if strings.Contains(name, "no more") {
				s.applied(t, "w")
				s.works.Delete(t, "w")
			}
			s.works.AwaitGone(t, "w")
		})
	}
}

// left are children that outlive their owner.
const left = `
orphan:
  onDelete: orphan
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-orphan", labels: {a: b}}, data: {value: x}}
orphanElsewhere:
  onDelete: orphan
  ownership: labelled
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-elsewhere", namespace: OTHER}, data: {value: x}}
retained:
  onDelete: retain
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-retained"}, data: {value: "${self.spec.value}"}}
`

// TestApplyLeavesBehind: what is to stay stays. Orphans are free, what is retained belongs to the
// next owner of the name, and to no other.
func TestApplyLeavesBehind(t *testing.T) {
	t.Parallel()
	other := plane.Namespace(t)
	s := newApplyStage(t, []string{other}, made("", "configmaps"))
	s.run(t, strings.ReplaceAll(beside+left, "OTHER", other), other)
	s.works.Create(t, work("w", "first"))
	s.applied(t, "w")
	elsewhere := plane.Objects(configMaps, other)
	kept := []*unstructured.Unstructured{s.maps.Get(t, "w-orphan"), elsewhere.Get(t, "w-elsewhere"), s.maps.Get(t, "w-retained")}
	s.works.Delete(t, "w")
	s.works.AwaitGone(t, "w")
	s.maps.AwaitGone(t, "w-beside") // the garbage collector has come past
	now := []*unstructured.Unstructured{s.maps.Get(t, "w-orphan"), elsewhere.Get(t, "w-elsewhere"), s.maps.Get(t, "w-retained")}
	for i, o := range now {
		if o == nil || o.GetUID() != kept[i].GetUID() || going(o) || dataValue(o) != dataValue(kept[i]) || len(o.GetOwnerReferences()) > 0 {
			t.Fatalf("what was left behind of %s is %v", kept[i].GetName(), o)
		}
		if i < 2 && (len(o.GetAnnotations()) > 0 || o.GetLabels()["apply.handwerk.dev/owner"] != "") {
			t.Errorf("the orphan is still tied: %v", o.Object["metadata"])
		}
	}
	if now[0].GetLabels()["a"] != "b" {
		t.Errorf("the orphan lost its own label: %v", now[0].GetLabels())
	}

	// The next one of the name finds its orphans foreign, and what was retained its own.
	s.works.Create(t, work("w", "second"))
	s.maps.Await(t, "w-retained", "the new owner's value", func(o *unstructured.Unstructured) bool {
		return o.GetUID() == kept[2].GetUID() && dataValue(o) == "second"
	})
	s.awaitVerdict(t, "w", "NotOwned", "w-orphan", "w-elsewhere", "adopt: ifUnowned")
	s.maps.Delete(t, "w-orphan")
	elsewhere.Delete(t, "w-elsewhere")
	s.applied(t, "w")
}

// TestApplyLeavesNoPods: Jobs that go take their Pods along, however they are tied and why they go.
func TestApplyLeavesNoPods(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ownership string
		end       func(*testing.T, *applyStage)
	}{
		"of an owned Job whose owner goes":   {"owned", func(t *testing.T, s *applyStage) { s.works.Delete(t, "w") }},
		"of a labelled Job whose owner goes": {"labelled", func(t *testing.T, s *applyStage) { s.works.Delete(t, "w") }},
		"of an owned Job that is not wanted": {"owned", func(t *testing.T, s *applyStage) { s.works.Patch(t, "w", `{"spec":{"value":"none"}}`) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApplyStage(t, nil, made("", "configmaps"), made("batch", "jobs"))
			s.run(t, beside+strings.ReplaceAll(`
job:
  ownership: OWNERSHIP
  includeWhen: self.spec.value != 'none'
  template:
    apiVersion: batch/v1
    kind: Job
    metadata: {name: "${self.metadata.name}-job"}
    spec: {template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: c, image: i}]}}}
`, "OWNERSHIP", test.ownership))
			s.works.Create(t, work("w", "a"))
			pods := func() int {
				list, err := plane.Kubernetes().CoreV1().Pods(s.ns).List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return len(list.Items)
			}
			waitFor(t, "a Pod", func() bool { return pods() > 0 })
			test.end(t, s)
			plane.Objects("jobs.v1.batch", s.ns).AwaitGone(t, "w-job")
			waitFor(t, "no Pod", func() bool { return pods() == 0 })
		})
	}
}
