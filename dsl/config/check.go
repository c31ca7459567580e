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

// Check holds an operator that could be loaded against what is known without a cluster: the kinds that its
// configuration describes, and those of Kubernetes itself, as the version has them that the program knows. It returns
// what is wrong, and what may be right all the same. The error tells that the program is broken.
func Check(op *dsl.Operator) (faults, warnings source.Faults, err error) {
	kubernetes, err := builtin.Open()
	if err != nil {
		return nil, nil, err
	}
	own, kinds := schemasOf(op), kubernetes.List()
	for _, r := range op.Resources() {
		if r.CRD != nil {
			kinds = kinds.With(r.CRD)
		}
	}
	known := dsl.Knowledge{
		OfResource: func(name dsl.ResourceName) *spec.Schema {
			return cmp.Or(own.named[name], kubernetes.OfResource(name.GVR()))
		},
		OfKind: func(kind schema.GroupVersionKind) *spec.Schema {
			return cmp.Or(own.ofKind[kind], kubernetes.OfKind(kind))
		},
		Kinds: kinds,
	}
	wrong, odd := op.CheckSchemas(op.Resources(), known)
	faults, warnings = Placed(wrong), Placed(odd)
	return faults.Sorted(), warnings.Sorted(), kubernetes.Err()
}

// Placed returns what was found about an operator with its places in the configuration. What an operator in Go
// has has none.
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
