// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"strings"
)

// Asks returns what a request asks for, without its body. It reports false if the path is not that of a resource.
func Asks(h *http.Request) (Request, bool) {
	r := Request{options: h.URL.Query(), contentType: h.Header.Get("Content-Type"), agent: h.Header.Get("User-Agent")}
	if !r.locate(strings.Split(strings.Trim(h.URL.Path, "/"), "/")) {
		return r, false
	}
	r.Verb = r.verb(h.Method)
	return r, true
}
