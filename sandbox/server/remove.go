// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// remove answers a deletion: with the object while something holds it, otherwise with a status.
func (s *Server) remove(t *table, r Request) (any, error) {
	options, err := r.deletion()
	if err != nil {
		return nil, err
	}
	warnOrphans(t, r, options)
	if why := s.stays(t, r.Name); why != "" {
		return nil, forbidden(t.name(), r.Name, why)
	}
	old := t.get(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if old == nil {
		return nil, apierrors.NewNotFound(t.name(), r.Name)
	}
	if old, err = s.askDeletion(t, r, old); err != nil {
		return nil, err
	}
	marked, err := s.delete(t, old, options)
	switch {
	case err != nil:
		return nil, err
	case marked != nil:
		if orphans := orphanDependents(options); orphans != nil && !*orphans {
			r.reply.code = http.StatusAccepted
		}
		return present(t, r, marked), nil
	case t.returnsDeleted():
		return present(t, r, s.last(t, old)), nil
	}
	return removed(t, old), nil
}

// warnOrphans warns of a deletion of a Job that leaves its Pods without having been asked to.
func warnOrphans(t *table, r Request, o metav1.DeleteOptions) {
	if t.group == "batch" && t.plural == "jobs" && o.PropagationPolicy == nil && orphanDependents(o) == nil {
		r.reply.warn("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning")
	}
}

// stays returns why an object of the cluster itself cannot be deleted, or nothing.
func (s *Server) stays(t *table, name string) string {
	switch {
	case s.schemas == nil:
	case t.name() == namespaces() && slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}, name):
		return "this namespace may not be deleted"
	case t.name() == priorityClasses() && (name == clusterCritical || name == nodeCritical):
		return "this is a system priority class and cannot be deleted"
	}
	return ""
}

// last returns an object as the answer to its deletion has it when it is gone.
func (s *Server) last(t *table, o *unstructured.Unstructured) *unstructured.Unstructured {
	out := o.DeepCopy()
	if !s.dry {
		out.SetResourceVersion(strconv.FormatInt(s.version, 10))
	}
	if t.group == "" && t.plural == "pods" { // it had a grace period of no length
		metadata := out.Object["metadata"].(map[string]any)
		metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = s.now(), int64(0)
		out.SetGeneration(o.GetGeneration() + 1)
	}
	return out
}

// removed returns the answer for an object that is gone.
func removed(t *table, o *unstructured.Unstructured) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: o.GetName(), Group: t.group, Kind: t.plural, UID: o.GetUID()},
	}
}

// returnsDeleted reports whether the answer to a deletion is the object even if it is gone.
func (r *resource) returnsDeleted() bool {
	switch r.group + "/" + r.plural {
	case "/namespaces", "/persistentvolumeclaims", "/persistentvolumes", "/pods", "/podtemplates", "/resourcequotas",
		"/serviceaccounts", "/services", "storage.k8s.io/csidrivers", "storage.k8s.io/csinodes", "storage.k8s.io/storageclasses",
		"storage.k8s.io/volumeattachments", "storage.k8s.io/volumeattributesclasses", "resource.k8s.io/deviceclasses",
		"resource.k8s.io/resourceclaims", "resource.k8s.io/resourceclaimtemplates", "resource.k8s.io/resourceslices":
		return true
	}
	return false
}

// clear answers a deletion of all selected objects with their list.
func (s *Server) clear(t *table, r Request) (any, error) {
	sel, _, err := s.selection(t, r)
	if err != nil {
		return nil, err
	}
	options, err := r.deletion()
	if err != nil {
		return nil, err
	}
	warnOrphans(t, r, options)
	rows := t.chosen(t.objects.In(r.Namespace), sel)
	out := s.newListing(t, r, page{rows: rows, version: s.version})
	for _, row := range rows {
		// The deletion of an object before may have removed this one, too.
		if o := t.get(types.NamespacedName{Namespace: row.Namespace, Name: row.Name}); o != nil {
			if o, err = s.askDeletion(t, r, o); err == nil {
				_, err = s.delete(t, o, options)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
