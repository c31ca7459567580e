// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

func TestOldVersionsExpire(t *testing.T) {
	for name, row := range map[string]struct {
		pass    func(w wire)
		expired bool
	}{
		"not in the first minutes":         {func(wire) { time.Sleep(4 * time.Minute) }, false},
		"after two times the interval":     {func(wire) { time.Sleep(10 * time.Minute) }, true},
		"after two times, with writes":     {func(w wire) { time.Sleep(6 * time.Minute); w.put("default", "c"); time.Sleep(5 * time.Minute) }, true},
		"between the two, if it was later": {func(w wire) { time.Sleep(6 * time.Minute) }, false},
		"at once, when a test wants it":    {func(w wire) { w.server.Compact() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire(t, complete.Settings())
				time.Sleep(time.Minute)
				first := w.put("default", "a")
				page := w.send(http.MethodGet, inDefault+"?limit=1", "")
				w.put("default", "b")
				row.pass(w)
				want := http.StatusOK
				if row.expired {
					want = http.StatusGone
				}
				at := inDefault + "?resourceVersionMatch=Exact&resourceVersion=" + first.meta("resourceVersion")
				if out := w.send(http.MethodGet, at, ""); out.code != want {
					t.Errorf("a list at an old version: %d %s", out.code, out.message())
				}
				if out := w.send(http.MethodGet, inDefault+"?limit=1&continue="+url.QueryEscape(page.meta("continue")), ""); out.code != want {
					t.Errorf("the next page: %d %s", out.code, out.message())
				}
				if out := w.send(http.MethodGet, inDefault, ""); out.code != http.StatusOK {
					t.Errorf("a list of now: %d %s", out.code, out.message())
				}
			})
		})
	}
}

func TestAnObjectWithoutEffectIsNotStoredSilently(t *testing.T) {
	settings := complete.Settings()
	var said []string
	settings.Unenforced = func(text string) { said = append(said, text) }
	w := newWire(t, settings)
	const body = `{"metadata":{"name":"a"},"webhooks":[{"name":"a.example.com","admissionReviewVersions":["v1"],"sideEffects":"None",
		"clientConfig":{"service":{"namespace":"default","name":"a"}},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE"]}]}]}`
	const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	const want = "webhook a.example.com is at a Service, and no network reaches Services of this server: give it a url, or the Service the type ExternalName"
	if got := w.send(http.MethodPost, path, body).header.Get("Warning"); got != `299 - "`+want+`"` {
		t.Errorf("the client gets the warning %s", got)
	}
	if len(said) != 1 || said[0] != want {
		t.Errorf("the log has %q", said)
	}
}
