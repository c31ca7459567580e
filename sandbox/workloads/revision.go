// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// history is what a DaemonSet or StatefulSet was before, as its ControllerRevisions say.
type history struct {
	*loop
	owner    object
	kind     string
	template *corev1.PodTemplateSpec
	// hash is that of the template, and label the one of revisions that has it.
	hash, label string
	// limit is how many old revisions stay.
	limit *int32
	// isUsed reports whether Pods of a revision run.
	isUsed func(*appsv1.ControllerRevision) bool
}

// keep makes the revision of the present template the newest one, and deletes the oldest revisions that are too many.
func (h history) keep() error {
	data, err := h.snapshot()
	if err != nil {
		return err
	}
	all := listOf[*appsv1.ControllerRevision](h.caches["ControllerRevision"].of(h.owner.GetUID()))
	slices.SortFunc(all, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	last := int64(0)
	if len(all) > 0 {
		last = all[len(all)-1].Revision
	}
	at := slices.IndexFunc(all, func(c *appsv1.ControllerRevision) bool { return reflect.DeepEqual(treeIn(c.Data), data) })
	switch {
	case at < 0:
		return h.create("ControllerRevision", h.revision(last+1, data), controllers)
	case all[at].Revision < last:
		return h.patch("ControllerRevision", all[at], controllers, map[string]any{"revision": last + 1})
	}
	return h.forget(slices.Delete(all, at, at+1))
}

// snapshot returns the patch that brings the present template back.
func (h history) snapshot() (map[string]any, error) {
	template, err := treeOf(h.template)
	if err != nil {
		return nil, err
	}
	template["$patch"] = "replace"
	return map[string]any{"spec": map[string]any{"template": template}}, nil
}

// treeIn returns the data of a revision; nil if it is no object.
func treeIn(data runtime.RawExtension) (out map[string]any) {
	tree, err := treeOf(data)
	if err != nil {
		return nil
	}
	return tree
}

func (h history) revision(number int64, data map[string]any) *appsv1.ControllerRevision {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("workloads: " + err.Error()) // not reached: it came as JSON
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.owner.GetNamespace(), Name: h.owner.GetName() + "-" + h.hash, Labels: with(h.template.Labels, h.label, h.hash),
			Annotations: maps.Clone(h.owner.GetAnnotations()), OwnerReferences: ownedBy(h.owner, h.kind),
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: number,
	}
}

// forget deletes the oldest of these revisions that are too many and that no Pod has.
func (h history) forget(old []*appsv1.ControllerRevision) error {
	keep := 10
	if h.limit != nil {
		keep = int(*h.limit)
	}
	idle := slices.DeleteFunc(old, func(c *appsv1.ControllerRevision) bool { return c.DeletionTimestamp != nil || h.isUsed(c) })
	for _, c := range idle[:max(0, len(idle)-keep)] {
		if err := h.delete("ControllerRevision", c, nil); err != nil {
			return err
		}
	}
	return nil
}

// stepRevision does nothing: the owner of a revision keeps it.
func stepRevision(*loop, *appsv1.ControllerRevision, Rule) error { return nil }
