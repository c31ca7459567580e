// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

func TestMetricsCountObjects(t *testing.T) {
	w := newWire(t, server.Settings{})
	w.put("default", "a")
	out := w.send(http.MethodGet, "/metrics", "")
	if want := `apiserver_resource_objects{group="",resource="configmaps"} 1` + "\n"; !strings.Contains(out.text, want) || !strings.HasPrefix(out.header.Get("Content-Type"), "text/plain") {
		t.Errorf("%s\nwithout %s", out.text, want)
	}
}
