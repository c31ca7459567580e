// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package caches decides about requests to write Caches.
package caches

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// Cache is the part of a Cache that the functions know.
type Cache struct {
	Spec struct {
		Memory   string `json:"memory,omitempty"`
		Replicas int    `json:"replicas,omitempty"`
		Tier     string `json:"tier,omitempty"`
	} `json:"spec"`
}

// sizes are the memory and the replicas of a tier.
var sizes = map[string]struct {
	memory   string
	replicas int
}{"small": {"256Mi", 1}, "large": {"4Gi", 3}}

// Functions registers the functions that operator.yaml calls.
func Functions(registry *actions.Registry) {
	registry.Admission("caches.Default", dsl.TypedAdmission(Default))
	registry.Admission("caches.Check", dsl.TypedAdmission(Check))
}

// Default fills in what the tier of a Cache means. A person's values stay.
func Default(_ context.Context, r *dsl.TypedAdmissionRequest[Cache]) error {
	spec := &r.Object.Spec
	size, known := sizes[spec.Tier]
	if !known {
		return dsl.Deny(metav1.StatusReasonInvalid, "there is no tier %q: want small or large", spec.Tier)
	}
	if spec.Memory == "" {
		spec.Memory = size.memory
	}
	if spec.Replicas == 0 {
		spec.Replicas = size.replicas
	}
	return nil
}

// Check rejects a second large Cache in a namespace, and warns of a single replica.
func Check(_ context.Context, r *dsl.TypedAdmissionRequest[Cache]) error {
	if r.Object.Spec.Replicas == 1 {
		r.Warn("a Cache with one replica is empty after each restart of its Pod")
	}
	if r.Object.Spec.Tier != "large" {
		return nil
	}
	index, err := dsl.Index[string, string](r, "large")
	if err != nil {
		return dsl.Undecided(err)
	}
	of := r.AdmissionRequest.Object
	names, err := index.Get(of.GetNamespace())
	if err != nil {
		return dsl.Undecided(err)
	}
	for _, name := range names {
		if name != of.GetName() {
			return dsl.Deny(metav1.StatusReasonForbidden, "namespace %s has the large Cache %s already", of.GetNamespace(), name)
		}
	}
	return nil
}
