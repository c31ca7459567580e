// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestASeedGivesTheSameRequests(t *testing.T) {
	texts := map[string]bool{}
	for range 2 {
		random, text := rand.New(rand.NewPCG(7, 0)), ""
		for range 100 {
			for _, r := range generate(random) {
				text += fmt.Sprintln(r, r.body, r.header)
				if _, err := http.NewRequest(r.method, "http://x"+strings.ReplaceAll(r.path, "$", ""), nil); err != nil {
					t.Error(err)
				}
			}
		}
		texts[text] = true
	}
	if len(texts) != 1 {
		t.Error("the requests of two runs differ")
	}
}

// server answers as a server with this fault of merge patches, if any.
func fake(t *testing.T, fault string) connection {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if fault != "" && r.Method == http.MethodPatch && strings.Contains(string(body), fault) {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprintln(w, `{"metadata":{"uid":"u","resourceVersion":"5"}}`)
	}))
	t.Cleanup(s.Close)
	return connect(&Server{URL: s.URL})
}

func TestADifferenceIsReducedToItsCause(t *testing.T) {
	f := &fuzzer{real: fake(t, ""), sandbox: fake(t, `"bad"`), run: "f"}
	sequence := []request{
		{method: "POST", path: "/api/v1/namespaces/$ns/configmaps?dryRun=All", body: `{"metadata":{"name":"a"}}`},
		{method: "GET", path: "/api/v1/namespaces/$ns/configmaps/a"},
		{method: "PATCH", path: "/api/v1/namespaces/$ns/configmaps/a?fieldManager=x&force=true", header: patchType("merge-patch+json"),
			body: `{"data":{"k":"good","l":["x","bad"]},"metadata":{"resourceVersion":"$version"}}`},
		{method: "DELETE", path: "/api/v1/namespaces/$ns/configmaps/a"},
	}
	found, err := f.compare(t.Context(), sequence)
	if err != nil || found == nil || found.step != 2 {
		t.Fatalf("the difference is %+v: %v", found, err)
	}
	sequence, found, err = f.reduce(t.Context(), sequence, found)
	if err != nil {
		t.Fatal(err)
	}
	const want = `
- name: PATCH /api/v1/namespaces/$ns/configmaps/a differs in code: real 200, sandbox 418
  steps:
  - PATCH $core/configmaps/a: {"data":{"l":["bad"]}}
    as: merge
  # code: real 200, sandbox 418
`
	if got := row(sequence, found); got != want {
		t.Errorf("the row is %s", got)
	}
	f.excuses = []excuse{{Request: "PATCH", Line: "code: real 200, sandbox 418"}}
	if found, err = f.compare(t.Context(), sequence); found != nil || err != nil {
		t.Errorf("with an excuse, the difference is %+v: %v", found, err)
	}
}

func TestAnswersAreComparedWithoutWhatAServerChooses(t *testing.T) {
	answers := []string{
		`{"metadata":{"name":"a-x7bcd","generateName":"a-","uid":"00000000-0000-4000-8000-00000000000a","resourceVersion":"7","creationTimestamp":"2026-01-01T00:00:00Z"},"uid":"00000000-0000-4000-8000-00000000000a","message":"in n1: 10.1.2.3"}`,
		`{"metadata":{"name":"a-00012","generateName":"a-","uid":"00000000-0000-4000-8000-0000000000ff","resourceVersion":"99","creationTimestamp":"2027-01-01T00:00:00Z"},"uid":"00000000-0000-4000-8000-0000000000ff","message":"in n2: 10.0.0.1"}`,
	}
	var plains []answer
	for i, text := range answers {
		var body any
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			t.Fatal(err)
		}
		plains = append(plains, newPlain(map[string]string{fmt.Sprintf("n%d", i+1): "<ns>"}).of(answer{Code: 200, Body: body}))
	}
	if lines := differences(plains[0], plains[1]); len(lines) > 0 {
		t.Errorf("they differ in %v", lines)
	}
	plains[1].Body.(map[string]any)["uid"] = "<uid 9>"
	if lines := differences(plains[0], plains[1]); len(lines) != 1 {
		t.Errorf("with another uid, they differ in %v", lines)
	}
}
