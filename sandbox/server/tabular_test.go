// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// asTable is what kubectl get accepts.
var asTable = []string{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}

// lines are the rows of a table after its columns.
func lines(table map[string]any) []string {
	var head []string
	columns, _ := table["columnDefinitions"].([]any)
	for _, c := range columns {
		head = append(head, fmt.Sprint(c.(map[string]any)["name"]))
	}
	out := []string{strings.Join(head, "|")}
	rows, _ := table["rows"].([]any)
	for _, row := range rows {
		row := row.(map[string]any)
		object, _ := row["object"].(map[string]any)
		out = append(out, fmt.Sprint(row["cells"], " ", object["kind"]))
	}
	return out
}

func TestObjectsComeAsTables(t *testing.T) {
	w := newWire(t, server.Settings{})
	w.put("default", "a")
	w.send(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"kind":"CustomResourceDefinition","metadata":{"name":"bars.example.com"},"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"bars","kind":"Bar"},"versions":[{"name":"v1","served":true,
		"additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"},{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"},{"name":"None","type":"string","jsonPath":".spec.none"}]}]}}`)
	w.send(http.MethodPost, "/apis/example.com/v1/bars", `{"apiVersion":"example.com/v1","kind":"Bar","metadata":{"name":"b"},"spec":{"size":3},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	for path, want := range map[string][]string{
		inDefault:                           {"Name|Data|Age", "[a 0 0s] PartialObjectMetadata"},
		inDefault + "/a":                    {"Name|Data|Age", "[a 0 0s] PartialObjectMetadata"},
		inDefault + "?includeObject=None":   {"Name|Data|Age", "[a 0 0s] <nil>"},
		inDefault + "?includeObject=Object": {"Name|Data|Age", "[a 0 0s] ConfigMap"},
		"/apis/example.com/v1/bars":         {"Name|Size|Ready|None", "[b 3 True <nil>] PartialObjectMetadata"},
	} {
		if diff := cmp.Diff(want, lines(w.send(http.MethodGet, path, "", asTable...).json)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	response := w.open(http.MethodGet, inDefault+"?watch=true", "", asTable...)
	defer response.Body.Close()
	line, err := bufio.NewReader(response.Body).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var event struct{ Object map[string]any }
	if err := json.Unmarshal(line, &event); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Name|Data|Age", "[a 0 0s] PartialObjectMetadata"}, lines(event.Object)); diff != "" {
		t.Errorf("a watch (-want +got):\n%s", diff)
	}
}
