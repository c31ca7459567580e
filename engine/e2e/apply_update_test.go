// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// updatedPod is a Pod whose image and environment are the value of a Work.
const updatedPod = `pod:
  update: UPDATE
  template:
    apiVersion: v1
    kind: Pod
    metadata: {name: "${self.metadata.name}-pod"}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: "i:${self.spec.value}", env: [{name: A, value: "${self.spec.value}"}]}]}
`

func imageOfPod(o *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	name, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image")
	return name
}

// TestUpdateRecreateMakesAChildAgain holds that a child with update: recreate is deleted once for a change of its template, and not
// for what somebody else changed, nor for a mark that the template did not change.
func TestUpdateRecreateMakesAChildAgain(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, made("", "configmaps"), made("", "pods"))
	pods := plane.Objects("pods.v1", s.ns)
	s.run(t, beside+strings.Replace(updatedPod, "UPDATE", "recreate", 1))
	s.works.Create(t, work("w", "a"))
	s.applied(t, "w")
	before := pods.Await(t, "w-pod", "being made", there)

	pods.Send(t, "w-pod", types.StrategicMergePatchType, `{"metadata":{"labels":{"by":"hand"}},"spec":{"containers":[{"name":"c","image":"i:other"}]}}`)
	pods.Await(t, "w-pod", "being put back", func(o *unstructured.Unstructured) bool { return imageOfPod(o) == "i:a" })
	s.quiesce(t, "w")
	if now := pods.Get(t, "w-pod"); now.GetUID() != before.GetUID() || now.GetLabels()["by"] != "hand" {
		t.Errorf("a drift of the child recreated it: %s", asJSON(t, now))
	}

	mark := plane.Mark(t)
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	after := pods.Await(t, "w-pod", "being recreated", func(o *unstructured.Unstructured) bool {
		return o.GetUID() != before.GetUID() && imageOfPod(o) == "i:b"
	})
	s.applied(t, "w")
	s.quiesce(t, "w")
	deleted := 0
	for _, w := range plane.Writes(t, s.user.Name, mark).Of("pods", "w-pod") {
		if w.Verb == "delete" {
			deleted++
		}
	}
	if line := s.running.With("deleted Pod " + s.ns + "/w-pod: its template has changed"); deleted != 1 || len(line) != 1 {
		t.Errorf("it was deleted %d times, and reported\n%s", deleted, strings.Join(line, "\n"))
	}

	// A mark that somebody has changed is no reason to delete anything.
	applied, _, _ := strings.Cut(after.GetAnnotations()["apply.handwerk.dev/applied"], ";")
	pods.Patch(t, "w-pod", `{"metadata":{"annotations":{"apply.handwerk.dev/applied":"`+applied+`;template:other"}}}`)
	pods.Await(t, "w-pod", "its mark again", func(o *unstructured.Unstructured) bool {
		return o.GetAnnotations()["apply.handwerk.dev/applied"] == after.GetAnnotations()["apply.handwerk.dev/applied"] && o.GetUID() == after.GetUID()
	})

	s.running.Stop(t)
	s.run(t, beside+strings.Replace(updatedPod, "UPDATE", "recreate\n  drift: strict", 1))
	pods.Await(t, "w-pod", "being applied by another process", func(o *unstructured.Unstructured) bool {
		return o.GetLabels()["by"] == ""
	})
	s.quiesce(t, "w")
	if now := pods.Get(t, "w-pod"); now.GetUID() != after.GetUID() {
		t.Error("another configuration with the same template recreated the child")
	}
}

// TestUpdateOnDeleteLeavesAChildUntilItIsDeleted holds that a child with update: onDelete gets its changed template when somebody
// deletes it, and that nothing is written before, not even by another process.
func TestUpdateOnDeleteLeavesAChildUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, made("", "configmaps"), made("", "pods"))
	pods := plane.Objects("pods.v1", s.ns)
	config := beside + strings.Replace(updatedPod, "UPDATE", "onDelete", 1)
	s.run(t, config)
	s.works.Create(t, work("w", "a"))
	s.applied(t, "w")
	pods.Await(t, "w-pod", "being made", there)
	mark := plane.Mark(t)
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	s.works.Await(t, "w", "saying that the Pod stays", func(o *unstructured.Unstructured) bool {
		return strings.Contains(asJSON(t, field(o, "status", "conditions")), "Not updated, as update: onDelete says: Pod "+s.ns+"/w-pod.")
	})
	s.quiesce(t, "w")
	s.running.Stop(t)
	s.run(t, config)
	s.quiesce(t, "w")
	if writes := plane.Writes(t, s.user.Name, mark).Of("pods", "w-pod"); len(writes) > 0 {
		t.Errorf("the Pod was written: %v", writes)
	}
	pods.Delete(t, "w-pod")
	pods.Await(t, "w-pod", "the new template", func(o *unstructured.Unstructured) bool { return imageOfPod(o) == "i:b" })
	s.applied(t, "w")
}
