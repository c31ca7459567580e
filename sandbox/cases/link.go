// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// clusterLink is the connection of what makes workloads come alive.
type clusterLink struct {
	http.RoundTripper

	journal *journal
}

// RoundTrip sends a request.
func (l clusterLink) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		l.journal.other()
	}
	return l.RoundTripper.RoundTrip(r)
}

// operatorLink is the connection of an operator. It has no OpenAPI documents, which the operator reads to check its expressions
// once more: that would cost a tenth of the time of a case, and operator validate has done it. Watches go on until the case
// ends: to open them again every few minutes would cost the more the more time passes.
type operatorLink struct{ http.RoundTripper }

// RoundTrip sends a request.
func (l operatorLink) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/openapi") {
		return &http.Response{
			StatusCode: http.StatusNotFound, Status: "404 Not Found", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, Request: r,
		}, nil
	}
	if query := r.URL.Query(); query.Has("timeoutSeconds") {
		query.Del("timeoutSeconds")
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
	}
	return l.RoundTripper.RoundTrip(r)
}

// allRights says that the operator may do everything, as the server of a case would. An operator asks for some 30 rights when it
// starts: that would be a quarter of the requests of all cases.
type allRights struct {
	authorization.SelfSubjectAccessReviewInterface
}

// SelfSubjectAccessReviews returns itself.
func (a allRights) SelfSubjectAccessReviews() authorization.SelfSubjectAccessReviewInterface {
	return a
}

// Create answers the question for a right.
func (allRights) Create(
	_ context.Context, review *authorizationv1.SelfSubjectAccessReview, _ metav1.CreateOptions,
) (*authorizationv1.SelfSubjectAccessReview, error) {
	review.Status.Allowed = true
	return review, nil
}
