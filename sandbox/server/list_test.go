// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

const inDefault = "/api/v1/namespaces/default/configmaps"

func TestAListInPagesIsThatOfOneVersion(t *testing.T) {
	w := newWire(t, server.Settings{History: 10})
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.put("default", name)
	}
	first := w.send(http.MethodGet, inDefault+"?limit=2", "")
	if diff := cmp.Diff([]string{"a", "b"}, first.names()); diff != "" || first.meta("remainingItemCount") != "3" {
		t.Errorf("the first page, and %s more (-want +got):\n%s", first.meta("remainingItemCount"), diff)
	}
	w.put("default", "bb")
	w.send(http.MethodDelete, inDefault+"/d", "")
	second := w.send(http.MethodGet, inDefault+"?limit=2&continue="+first.meta("continue"), "")
	if diff := cmp.Diff([]string{"c", "d"}, second.names()); diff != "" {
		t.Errorf("the second page is not that of the first page's version (-want +got):\n%s", diff)
	}
	third := w.send(http.MethodGet, inDefault+"?limit=2&continue="+second.meta("continue"), "")
	if diff := cmp.Diff([]string{"e"}, third.names()); diff != "" || third.meta("continue") != "" || third.meta("resourceVersion") != first.meta("resourceVersion") {
		t.Errorf("the last page of version %s (-want +got):\n%s", third.meta("resourceVersion"), diff)
	}
	whole := w.send(http.MethodGet, "/api/v1/configmaps?resourceVersion=0&limit=1", "")
	if diff := cmp.Diff([]string{"a", "b", "bb", "c", "e"}, whole.names()); diff != "" {
		t.Errorf("a list of any version has no pages (-want +got):\n%s", diff)
	}
}

func TestAnOldTokenHasAnotherForTheRest(t *testing.T) {
	w := newWire(t, server.Settings{History: 3})
	for _, name := range []string{"a", "b", "c"} {
		w.put("default", name)
	}
	first := w.send(http.MethodGet, inDefault+"?limit=1", "")
	for _, name := range []string{"d", "e", "f", "g", "h", "i", "j"} {
		w.put("default", name)
	}
	late := w.send(http.MethodGet, inDefault+"?limit=2&continue="+first.meta("continue"), "")
	if late.code != http.StatusGone || late.json["reason"] != "Expired" {
		t.Fatalf("an old token gets %d %s", late.code, late.text)
	}
	rest := w.send(http.MethodGet, inDefault+"?limit=2&continue="+late.meta("continue"), "")
	if diff := cmp.Diff([]string{"b", "c"}, rest.names()); diff != "" {
		t.Errorf("the rest (-want +got):\n%s", diff)
	}
	old := w.send(http.MethodGet, inDefault+"?resourceVersionMatch=Exact&resourceVersion="+first.meta("resourceVersion"), "")
	if old.code != http.StatusGone || old.message() != "The resourceVersion for the provided list is too old." {
		t.Errorf("an old version gets %d %s", old.code, old.text)
	}
}

func TestAListIsOfTheVersionThatItsClientAsksFor(t *testing.T) {
	w := newWire(t, server.Settings{})
	first := w.put("default", "a").meta("resourceVersion")
	w.put("default", "b")
	for query, want := range map[string][]string{
		"?resourceVersion=" + first:                                      {"a", "b"},
		"?resourceVersionMatch=NotOlderThan&resourceVersion=" + first:    {"a", "b"},
		"?resourceVersionMatch=NotOlderThan&resourceVersion=0":           {"a", "b"},
		"?resourceVersionMatch=Exact&resourceVersion=" + first:           {"a"},
		"?limit=5&resourceVersion=" + first:                              {"a"},
		"?labelSelector=part%3Dx":                                        nil,
		"?fieldSelector=metadata.name%3Db":                               {"b"},
		"?fieldSelector=metadata.namespace%3Dother":                      nil,
		"?fieldSelector=metadata.name!%3Db,metadata.namespace%3Ddefault": {"a"},
	} {
		if diff := cmp.Diff(want, w.send(http.MethodGet, inDefault+query, "").names()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestListsThatTheServerRefuses(t *testing.T) {
	w := newWire(t, server.Settings{})
	w.put("default", "a")
	for query, want := range map[string]string{
		"?resourceVersion=x":                                `400 invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`,
		"?resourceVersionMatch=Exact":                       `422 ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided`,
		"?resourceVersionMatch=Exact&resourceVersion=0":     `422 ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"`,
		"?resourceVersionMatch=Other&resourceVersion=1":     `422 ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Other": supported values: "Exact", "NotOlderThan", ""`,
		"?sendInitialEvents=true":                           `422 ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list`,
		"?watch=true&sendInitialEvents=true":                `422 ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan`,
		"?resourceVersion=1000":                             `504 Timeout: Too large resource version: 1000, current: 3`,
		"?continue=!":                                       `400 invalid continue token: continue key is not valid: illegal base64 data at input byte 0`,
		"?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MH0": `400 invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)`,
	} {
		out := w.send(http.MethodGet, inDefault+query, "")
		if got := fmt.Sprint(out.code, " ", out.message()); got != want {
			t.Errorf("%s\n  got  %s\n  want %s", query, got, want)
		}
	}
}
