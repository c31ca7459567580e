// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"io"
	"net/http"
	"strings"
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

// operatorLink is the connection of an operator. It answers a few requests itself, because they would cost much of the time
// of a case. It has no OpenAPI documents, which the operator reads to check its expressions once more: operator validate
// has done it. It grants each right, as the server of a case would; an operator asks for some 30 rights when it starts.
// Watches go on until the case ends: to open them again every few minutes would cost the more the more time passes.
type operatorLink struct{ http.RoundTripper }

// RoundTrip sends a request.
func (l operatorLink) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/openapi"):
		return answer(r, http.StatusNotFound, ""), nil
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		const granted = `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}, "status": {"allowed": true}}`
		return answer(r, http.StatusCreated, granted), nil
	}
	if query := r.URL.Query(); query.Has("timeoutSeconds") {
		query.Del("timeoutSeconds")
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
	}
	return l.RoundTripper.RoundTrip(r)
}

// answer returns a response with a text in JSON.
func answer(r *http.Request, code int, text string) *http.Response {
	if r.Body != nil {
		_ = r.Body.Close() // nothing was read from it
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r,
	}
}
