// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	kjson "sigs.k8s.io/json"
)

// evictions is what the server knows of evictions: of their form alone, as it keeps none.
func evictions() *table {
	return &table{resource: resource{group: policyv1.GroupName, versions: []string{"v1"}, plural: "evictions", kind: "Eviction"}}
}

// severalBudgets is why a Pod with more than one budget cannot be evicted.
const severalBudgets = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."

// evict deletes a Pod, unless a PodDisruptionBudget does not allow that now.
func (s *Server) evict(t *table, r Request) (any, error) {
	options, err := r.eviction()
	if err != nil {
		return nil, err
	}
	s.dry = len(options.DryRun) > 0
	eviction := &unstructured.Unstructured{Object: r.Body}
	kind := policyv1.SchemeGroupVersion.WithKind(evictions().kind)
	if err := s.validated(t, r, subject{kind: kind, operation: admission.Create, next: eviction}); err != nil {
		return nil, err
	}
	old := t.get(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if old == nil {
		return nil, apierrors.NewNotFound(t.name(), r.Name)
	}
	guards, err := s.guardsOf(old)
	if err != nil {
		return nil, err
	}
	if len(guards) > 1 {
		return nil, internalError(errors.New(severalBudgets)) //nolint:staticcheck // the words are the API server's
	}
	for _, g := range guards {
		if err := g.allows(); err != nil {
			return nil, err
		}
	}
	if err := meets(t, old, options.Preconditions); err != nil {
		return nil, err
	}
	for _, g := range guards {
		if err := s.spend(g); err != nil {
			return nil, err
		}
	}
	if err := s.endEvicted(t, old, options); err != nil {
		return nil, err
	}
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Code: http.StatusCreated}, nil
}

// endEvicted deletes a Pod, whose status then says why.
func (s *Server) endEvicted(t *table, pod *unstructured.Unstructured, options metav1.DeleteOptions) error {
	next := pod.DeepCopy()
	err := setCondition(next, map[string]any{
		"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting", "lastProbeTime": nil, "lastTransitionTime": s.now(),
	})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if !same(pod, next) {
		pod = s.commit(t, store.Modified, next)
	}
	options.Preconditions = nil // the object before this write has met them
	_, err = s.delete(t, pod, options)
	return err
}

// eviction returns the options of the deletion that an eviction asks for.
func (r Request) eviction() (metav1.DeleteOptions, error) {
	if r.Body["apiVersion"] == policyv1beta1.SchemeGroupVersion.String() && r.Body["kind"] == evictions().kind {
		r.Body["apiVersion"] = policyv1.SchemeGroupVersion.String()
	}
	o, err := r.object(evictions())
	if err != nil {
		return metav1.DeleteOptions{}, err
	}
	var asked policyv1.Eviction
	strict, err := kjson.UnmarshalStrict(r.raw, &asked)
	if err != nil {
		return metav1.DeleteOptions{}, r.undecodable(evictions(), o, err.Error())
	}
	if err := cmp.Or(r.unknown(evictions(), o, UnknownFields(strict)), r.placed(o)); err != nil {
		return metav1.DeleteOptions{}, err
	}
	if asked.Name != r.Name {
		return metav1.DeleteOptions{}, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	return r.evictionOptions(asked.DeleteOptions)
}

// evictionOptions returns the options of an eviction's body with the dry run of its query.
func (r Request) evictionOptions(asked *metav1.DeleteOptions) (out metav1.DeleteOptions, err error) {
	if asked != nil {
		out = *asked
	}
	switch runs := r.options["dryRun"]; {
	case len(out.DryRun) == 0:
		out.DryRun = runs
	case len(runs) > 0 && !reflect.DeepEqual(runs, out.DryRun):
		return out, internalError(fmt.Errorf("Non-matching dry-run options in request and content: %v and %v", runs, out.DryRun)) //nolint:staticcheck // the words are the API server's
	}
	if errs := metav1validation.ValidateDeleteOptions(&out); len(errs) > 0 {
		return out, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	return out, nil
}
