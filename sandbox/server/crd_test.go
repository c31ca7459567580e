// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"io"
	"net/http"
	"sync"
	"testing"
)

const foosDefinition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.example.com"

// TestListsAreReadWhileTheirKindChanges is for the race detector: lists are encoded without the server's lock.
func TestListsAreReadWhileTheirKindChanges(t *testing.T) {
	w := newFoos(t)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 50 {
				response := w.open(http.MethodGet, foos, "")
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		})
	}
	for i := range 50 {
		body := `{"spec":{"names":{"singular":"foo` + string(rune('a'+i%26)) + `"}}}`
		if out := w.send(http.MethodPatch, foosDefinition, body, "Content-Type", "application/merge-patch+json"); out.code != http.StatusOK {
			t.Error(out.text)
		}
	}
	readers.Wait()
}
