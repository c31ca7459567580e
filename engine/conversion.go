// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/convert"
	"github.com/handwerk-dev/handwerk/engine/cluster/registration"
	"github.com/handwerk-dev/handwerk/engine/cluster/webhook"
)

// conversions returns the functions that convert objects of resources with several versions, by path.
func (q *requests) conversions() map[string]webhook.Convert {
	out := map[string]webhook.Convert{}
	for _, r := range q.engine.op.Resources() {
		if c := convert.Of(r); c != nil {
			out[dsl.ConversionPath(r.CRDName())] = func(_ context.Context, o *unstructured.Unstructured, to string) (*unstructured.Unstructured, error) {
				tree, err := c.Convert(o.Object, to)
				return &unstructured.Unstructured{Object: tree}, err
			}
		}
	}
	return out
}

// conversionObjects returns the parts of CRDs that have the API server call this operator.
func (q *requests) conversionObjects(bundle []byte) (out []*unstructured.Unstructured) {
	for _, r := range q.engine.op.Resources() {
		if !r.Converts() {
			continue
		}
		client, path := map[string]any{"caBundle": nil}, dsl.ConversionPath(r.CRDName()) // nil removes that of an earlier certificate
		if len(bundle) > 0 {
			client["caBundle"] = base64.StdEncoding.EncodeToString(bundle)
		}
		if q.set.URL != "" {
			client["url"] = q.set.URL + path
		} else {
			client["service"] = map[string]any{"namespace": q.engine.settings.Namespace, "name": q.set.Service, "path": path, "port": int64(443)}
		}
		out = append(out, registration.Conversion(r.CRDName(), client))
	}
	return out
}
