// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestColumnsShowValues(t *testing.T) {
	const fields = `{text: abc, number: 3, half: 1.5, flag: true, list: [{name: a, value: one}, {name: b, value: two}], map: {k: v}, at: "2020-01-01T00:00:00Z", when: soon}`
	for _, c := range []struct{ name, kind, path, want string }{
		{"a text", "string", ".spec.text", `"abc"`},
		{"a number as text", "string", ".spec.number", `"3"`},
		{"a condition as text", "string", ".spec.flag", `"true"`},
		{"a list as text", "string", ".spec.list", `"[{\"name\":\"a\",\"value\":\"one\"},{\"name\":\"b\",\"value\":\"two\"}]"`},
		{"a map as text", "string", ".spec.map", `"{\"k\":\"v\"}"`},
		{"what is absent", "string", ".spec.none", `<nil>`},
		{"the first of several", "string", ".spec.list[*].name", `"a"`},
		{"one that is chosen", "string", `.spec.list[?(@.name=="b")].value`, `"two"`},
		{"a whole number", "integer", ".spec.number", `3`},
		{"a part as a whole number", "integer", ".spec.half", `1`},
		{"a text as a number", "integer", ".spec.text", `<nil>`},
		{"a whole number as any", "number", ".spec.number", `3`},
		{"a condition", "boolean", ".spec.flag", `true`},
		{"a text as a condition", "boolean", ".spec.text", `<nil>`},
		{"a time that is none", "date", ".spec.when", `"<invalid>"`},
		{"a number as a time", "date", ".spec.number", `<nil>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			w.ok(http.MethodPost, crds, crd(`
schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
additionalPrinterColumns: [{name: Value, type: `+c.kind+`, jsonPath: '`+c.path+`', priority: 1, description: a value, format: date}, {name: Plain, type: string, jsonPath: .spec.text}]`))
			w.ok(http.MethodPost, foos, foo("spec: "+fields))
			table := w.table(foos)
			if got := fmt.Sprintf("%#v", table.Rows[0].Cells[1]); got != c.want {
				t.Errorf("the cell is %s, want %s", got, c.want)
			}
			want := metav1.TableColumnDefinition{Name: "Value", Type: c.kind, Format: "date", Description: "a value", Priority: 1}
			if diff := cmp.Diff(want, table.ColumnDefinitions[1]); diff != "" {
				t.Errorf("the column is another one (-want +got):\n%s", diff)
			}
			const path = "Custom resource definition column (in JSONPath format): .spec.text"
			if got := table.ColumnDefinitions[2].Description; got != path {
				t.Errorf("a column without a description has %q, want %q", got, path)
			}
		})
	}
}

func TestKindsWithoutColumnsHaveTheirAge(t *testing.T) {
	w := newWire(t)
	w.ok(http.MethodPost, crds, crd("schema: {openAPIV3Schema: {type: object}}"))
	var got []string
	for _, column := range w.table(foos).ColumnDefinitions {
		got = append(got, column.Name+" "+column.Type+" "+column.Format)
	}
	if diff := cmp.Diff([]string{"Name string name", "Age date "}, got); diff != "" {
		t.Errorf("other columns (-want +got):\n%s", diff)
	}
}

// table returns a list as kubectl get has it.
func (w wire) table(path string) (out metav1.Table) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://cluster"+path, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	response, err := w.link.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&out); err != nil {
		w.t.Fatal(err)
	}
	return out
}
