// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// HoldsReviewsOf holds the reviews of access to Foos in a namespace until the gate is closed.
func HoldsReviewsOf(namespace string, gate <-chan struct{}) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				if bytes.Contains(body, []byte(`"namespace":"`+namespace+`"`)) && bytes.Contains(body, []byte("foos")) {
					select {
					case <-gate:
					case <-r.Context().Done():
						return nil, r.Context().Err()
					}
				}
			}
			return next.RoundTrip(r)
		})
	}
}
