// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

func TestPeopleGetJSONInLines(t *testing.T) {
	w := newWire(t, server.Settings{})
	w.put("default", "a")
	for name, c := range map[string]struct {
		path, agent string
		want        bool
	}{
		"curl":                    {inDefault + "/a", "curl/8.1", true},
		"a list for curl":         {inDefault, "curl/8.1", true},
		"curl, which wants none":  {inDefault + "/a?pretty=false", "curl/8.1", false},
		"a program":               {inDefault + "/a", "client-go", false},
		"a program that wants it": {inDefault + "/a?pretty=true", "client-go", true},
	} {
		out := w.send(http.MethodGet, c.path, "", "User-Agent", c.agent)
		if got := strings.Contains(out.text, "\n  \"kind\": "); got != c.want {
			t.Errorf("%s: in lines %t, want %t: %.60s", name, got, c.want, out.text)
		}
	}
}
