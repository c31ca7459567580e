// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/json"
)

// decode reads an AdmissionReview.
func (review Review) decode(body []byte) (job, error) {
	var in admissionv1.AdmissionReview
	if err := decode(body, &in, func() metav1.TypeMeta { return in.TypeMeta }, reviewType); err != nil {
		return job{}, err
	}
	r := in.Request
	if r == nil || r.UID == "" {
		return job{}, &refusal{code: http.StatusBadRequest, text: "the review has no request with a uid"}
	}
	return job{
		namespace: r.Namespace,
		uid:       r.UID,
		about:     []any{"operation", r.Operation, "resource", r.Resource.Resource, "namespace", r.Namespace, "name", r.Name},
		run: func(ctx context.Context) answer {
			if out := review(ctx, r); out != nil {
				return reviewed(r.UID, *out)
			}
			a := denial(r.UID, "the webhook gave no response")
			a.result = Failed
			return a
		},
		panicked: func(id string) answer {
			a := denial(r.UID, fmt.Sprintf("the webhook panicked; the operator's log says why, with the id %s", id))
			a.result = Panicked
			return a
		},
	}, nil
}

var reviewType = metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}

// reviewed returns the answer with a response to the request of that UID.
func reviewed(uid types.UID, out admissionv1.AdmissionResponse) answer {
	out.UID = uid
	if len(out.Patch) > 0 && out.PatchType == nil {
		kind := admissionv1.PatchTypeJSONPatch
		out.PatchType = &kind
	}
	result := Denied
	if out.Allowed {
		result = Allowed
	}
	return answer{body: admissionv1.AdmissionReview{TypeMeta: reviewType, Response: &out}, result: result}
}

func denial(uid types.UID, text string) answer {
	return reviewed(uid, admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: text,
	}})
}

// decode reads a body and checks the type that it has: function is returns it after the read. Names of fields are compared as the API server does, in the
// case in which they are written.
func decode(body []byte, into any, is func() metav1.TypeMeta, want metav1.TypeMeta) error {
	if err := json.UnmarshalCaseSensitivePreserveInts(body, into); err != nil {
		return &refusal{code: http.StatusBadRequest, text: "reading the review: " + shortened(err.Error())}
	}
	if got := is(); got != want {
		return &refusal{code: http.StatusBadRequest, text: fmt.Sprintf("this path takes %s %s, not %s %s",
			want.APIVersion, want.Kind, shortened(got.APIVersion), shortened(got.Kind))}
	}
	return nil
}
