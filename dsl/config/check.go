// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/builtin"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// Check checks an operator that could be loaded, without a cluster, against the kinds that its configuration
// describes and the built-in kinds of the Kubernetes version that the program knows. It returns faults, and
// warnings for uncertain ones. An error means that the program itself is broken.
func Check(op *dsl.Operator) (faults, warnings source.Faults, err error) {
	kubernetes, err := builtin.Open()
	if err != nil {
		return nil, nil, err
	}
	own, kinds := Own(op), kubernetes.List()
	for _, r := range op.Resources() {
		if r.CRD != nil {
			kinds = kinds.With(r.CRD)
		}
	}
	known := dsl.Knowledge{
		OfResource: func(name dsl.ResourceName) *spec.Schema {
			return cmp.Or(own.OfResource(name), kubernetes.OfResource(name.GVR()))
		},
		OfKind: func(kind schema.GroupVersionKind) *spec.Schema {
			return cmp.Or(own.OfKind(kind), kubernetes.OfKind(kind))
		},
		Kinds: kinds,
	}
	wrong, odd := op.CheckSchemas(op.Resources(), known)
	faults, warnings = Placed(wrong), Placed(odd)
	return faults.Sorted(), warnings.Sorted(), kubernetes.Err()
}

// Placed adds places in the configuration to faults of an operator. Declarations in Go have no place.
func Placed(found []error) (out source.Faults) {
	for _, err := range found {
		placed, ok := errors.AsType[source.Fault](err)
		if !ok {
			placed = source.Fault{File: "configuration", Message: err.Error()}
		}
		out = append(out, placed)
	}
	return out
}
