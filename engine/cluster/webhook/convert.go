// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// conversionReview has the fields of ConversionReview in k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1. That package would
// bring the schemas of CRDs into each program with an operator.
type conversionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *conversionRequest  `json:"request,omitempty"`
	Response        *conversionResponse `json:"response,omitempty"`
}

type conversionRequest struct {
	UID               types.UID              `json:"uid"`
	DesiredAPIVersion string                 `json:"desiredAPIVersion"`
	Objects           []runtime.RawExtension `json:"objects"`
}

type conversionResponse struct {
	UID              types.UID                    `json:"uid"`
	ConvertedObjects []*unstructured.Unstructured `json:"convertedObjects"`
	Result           metav1.Status                `json:"result"`
}

var conversionType = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"}

// decode reads a ConversionReview.
func (convert Convert) decode(body []byte) (job, error) {
	var in conversionReview
	if err := decode(body, &in, func() metav1.TypeMeta { return in.TypeMeta }, conversionType); err != nil {
		return job{}, err
	}
	r := in.Request
	if r == nil || r.UID == "" || r.DesiredAPIVersion == "" {
		return job{}, &refusal{code: http.StatusBadRequest, text: "the review has no request with a uid and a desiredAPIVersion"}
	}
	objects := make([]*unstructured.Unstructured, len(r.Objects))
	for i, raw := range r.Objects {
		objects[i] = &unstructured.Unstructured{}
		if err := objects[i].UnmarshalJSON(raw.Raw); err != nil {
			return job{}, &refusal{code: http.StatusBadRequest, text: fmt.Sprintf("reading object %d of the review: %s", i, shortened(err.Error()))}
		}
	}
	return convert.job(r.UID, r.DesiredAPIVersion, objects), nil
}

func (convert Convert) job(uid types.UID, to string, objects []*unstructured.Unstructured) job {
	namespace := ""
	if len(objects) > 0 {
		namespace = objects[0].GetNamespace() // those of a list may be of several; one stands for all
	}
	return job{
		namespace: namespace,
		uid:       uid,
		about:     []any{"desiredAPIVersion", to, "objects", len(objects)},
		run: func(ctx context.Context) answer {
			converted, err := convert.all(ctx, objects, to)
			if err != nil {
				return conversionFailed(uid, err.Error(), Failed)
			}
			return answer{body: conversionAnswer(uid, converted, metav1.Status{Status: metav1.StatusSuccess}), result: Converted}
		},
		panicked: func(id string) answer {
			return conversionFailed(uid, "the conversion panicked; the operator's log says why, with the id "+id, Panicked)
		},
	}
}

// all converts objects in their order. Those that have the version stay as they are.
func (convert Convert) all(ctx context.Context, objects []*unstructured.Unstructured, to string) ([]*unstructured.Unstructured, error) {
	out := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		if out[i] = o; o.GetAPIVersion() == to {
			continue
		}
		name, from, kind := o.GetNamespace()+"/"+o.GetName(), o.GetAPIVersion(), o.GetKind()
		converted, err := convert(ctx, o, to)
		switch {
		case err != nil:
		case converted == nil || converted.Object == nil:
			err = errors.New("the function returned no object")
		case converted.GetAPIVersion() != to || converted.GetKind() != kind:
			err = fmt.Errorf("the function returned %s %s", converted.GetAPIVersion(), converted.GetKind())
		}
		if err != nil {
			return nil, fmt.Errorf("converting %s %s from %s to %s: %w", kind, name, from, to, err)
		}
		out[i] = converted
	}
	return out, nil
}

func conversionFailed(uid types.UID, text, result string) answer {
	return answer{body: conversionAnswer(uid, nil, metav1.Status{Status: metav1.StatusFailure, Message: text}), result: result}
}

func conversionAnswer(uid types.UID, converted []*unstructured.Unstructured, result metav1.Status) conversionReview {
	return conversionReview{TypeMeta: conversionType, Response: &conversionResponse{UID: uid, ConvertedObjects: converted, Result: result}}
}
