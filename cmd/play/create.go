// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

// create applies objects. What is refused is reported, and comes again with the next change of any file.
func (p *player) create(ctx context.Context, objects []thing) {
	for _, o := range objects {
		delete(p.refused, o.file)
	}
	for _, o := range objects {
		if err := p.apply(ctx, o.Unstructured); err != nil && ctx.Err() == nil {
			p.refused[o.file] = true
			p.lines.fault("", fmt.Errorf("creating %s %s of %s: %w%s", o.GetKind(), o.GetName(), o.file, err, source.BooleanAdvice(o.file, err)))
		}
	}
}

// due returns the examples in files that have changed, or that were refused before. Others are left as somebody may
// have changed them in the cluster.
func (p *player) due(examples []thing, changed []string) (out []thing) {
	for _, e := range examples {
		if slices.Contains(changed, e.file) || p.refused[e.file] {
			out = append(out, e)
		}
	}
	return out
}

// apply applies an object by server-side apply.
func (p *player) apply(ctx context.Context, o *unstructured.Unstructured) error {
	mapping, err := p.place.find(ctx, o.GroupVersionKind())
	if err != nil {
		return err
	}
	resource := dynamic.ResourceInterface(p.place.client.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		o.SetNamespace(cmp.Or(o.GetNamespace(), p.Namespace))
		resource = p.place.client.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	_, err = resource.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "operator-play", Force: p.Cluster == nil})
	return err
}
