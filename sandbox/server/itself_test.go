// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// TestTheServiceOfTheServerIsAlwaysThere holds also what a control plane of one API server leaves to its options: the Endpoints.
func TestTheServiceOfTheServerIsAlwaysThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, complete.Settings())
		for _, path := range []string{
			"/api/v1/namespaces/default/services/kubernetes", "/api/v1/namespaces/default/endpoints/kubernetes",
			"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
		} {
			first := w.send(http.MethodGet, path, "").meta("uid")
			if first == "" {
				t.Errorf("%s is not there", path)
			}
			w.send(http.MethodDelete, path, "")
			time.Sleep(time.Second)
			if again := w.send(http.MethodGet, path, "").meta("uid"); again == "" || again == first {
				t.Errorf("%s did not come again: it is %s after %s", path, again, first)
			}
		}
	})
}
