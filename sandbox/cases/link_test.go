// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestWatchesOfAnOperatorHaveNoEnd(t *testing.T) {
	var got string
	link := operatorLink{trip(func(r *http.Request) (*http.Response, error) {
		got = r.URL.RawQuery
		return &http.Response{Body: http.NoBody}, nil
	})}
	request := httptest.NewRequest(http.MethodGet, "/api/v1/pods?resourceVersion=5&timeoutSeconds=374&watch=true", nil)
	response, err := link.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if want := "resourceVersion=5&watch=true"; got != want {
		t.Errorf("the server gets %s, want %s", got, want)
	}
}

type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
