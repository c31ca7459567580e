// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// TestARequestHasAHigherNumberThanTheOneItFollowsFrom sends a request before the response to the one before is there, as a watch
// makes clients do.
func TestARequestHasAHigherNumberThanTheOneItFollowsFrom(t *testing.T) {
	numbers := map[string]int64{}
	var c *Client
	c = New(Settings{}).Client(nil, func(ctx context.Context, r Request, _ int) error {
		if r.Body["kind"] == "Namespace" {
			send(ctx, t, c, "/api/v1/namespaces/shop/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"in-it"}}`)
		}
		numbers[r.Resource.Resource] = r.Number
		return nil
	})
	send(t.Context(), t, c, "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)
	if first, second := numbers["namespaces"], numbers["configmaps"]; first == 0 || first >= second {
		t.Errorf("the namespace has number %d, what was made in it has %d", first, second)
	}
}

func send(ctx context.Context, t *testing.T, c *Client, path, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("the answer to POST %s is %s", path, response.Status)
	}
}
