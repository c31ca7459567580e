// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package customs

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// fields are writes of an object of a CRD. After each, the object and its managed fields are compared.
type fields struct {
	// Name is a sentence.
	Name string `json:"name"`
	// Versions are those of the CRD.
	Versions []any `json:"versions"`
	// Steps are the writes.
	Steps []write `json:"steps"`
}

// write is a request for the object.
type write struct {
	// Apply, Create, Update, Merge and Edit have a body: that of an apply, of a new object, of an update that reads the object
	// first, of a merge patch or of a JSON patch.
	Apply, Create, Update, Merge any
	Edit                         []any
	// By is the field manager.
	By string `json:"by"`
	// In is the version; v1 without one.
	In string `json:"in"`
	// To is a subresource.
	To string `json:"to"`
	// Force takes fields from other managers.
	Force bool `json:"force"`
}

// TestFieldsAreManagedAsByARealServer does the writes of testdata/fields.yaml on both servers, and compares what each
// write returns: the object with its managed fields, or why it is refused.
func TestFieldsAreManagedAsByARealServer(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "fields.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []fields
	if err := yaml.UnmarshalStrict(text, &cases); err != nil {
		t.Fatal(err)
	}
	genuine, memory := both(t)
	t.Run("cases", func(t *testing.T) {
		for i, each := range cases {
			t.Run(each.Name, func(t *testing.T) {
				t.Parallel()
				group := fmt.Sprintf("fields%d.example.com", i)
				want, got := each.do(t, genuine, group), each.do(t, memory, group)
				for i := range want {
					if diff := cmp.Diff(strings.Split(want[i], "\n"), strings.Split(got[i], "\n")); diff != "" {
						t.Errorf("step %d (-real +in memory):\n%s", i, diff)
					}
				}
			})
		}
	})
}

// do returns the answers of a server to all steps.
func (f fields) do(t *testing.T, s endpoint, group string) (out []string) {
	t.Helper()
	crd, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "foos." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "versions": f.Versions,
			"names": map[string]any{"plural": "foos", "kind": "Foo"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := func(version string) string { return "/apis/" + group + "/" + version + "/namespaces/default/foos" }
	var paths []string
	for _, version := range f.Versions {
		if v := version.(map[string]any); v["served"] == true {
			paths = append(paths, path(v["name"].(string)))
		}
	}
	s.define(t, string(crd), paths...)
	t.Cleanup(func() { s.undefine(t, "foos."+group) })
	for _, step := range f.Steps {
		if step.In == "" {
			step.In = "v1"
		}
		out = append(out, step.do(t, s, path(step.In), group+"/"+step.In))
	}
	return out
}

// do sends a write.
func (w write) do(t *testing.T, s endpoint, path, apiVersion string) string {
	t.Helper()
	one := strings.TrimSuffix(path+"/a/"+w.To, "/")
	query := url.Values{"fieldManager": {w.By}}
	if w.Force {
		query.Set("force", "true")
	}
	method, contentType, body := http.MethodPatch, "", any(nil)
	switch {
	case w.Apply != nil:
		contentType, body = "application/apply-patch+yaml", whole(w.Apply, apiVersion)
	case w.Merge != nil:
		contentType, body = "application/merge-patch+json", w.Merge
	case w.Edit != nil:
		contentType, body = "application/json-patch+json", w.Edit
	case w.Create != nil:
		method, one, contentType, body = http.MethodPost, path, "application/json", whole(w.Create, apiVersion)
	case w.Update != nil:
		now := s.send(t.Context(), t, http.MethodGet, one, "", "test", "").body
		method, contentType, body = http.MethodPut, "application/json", over(now, w.Update.(map[string]any))
	}
	text, err := yaml.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return s.send(t.Context(), t, method, one+"?"+query.Encode(), contentType, "test", string(text)).said()
}

// whole returns an object with a head.
func whole(body any, apiVersion string) map[string]any {
	head := map[string]any{"apiVersion": apiVersion, "kind": "Foo", "metadata": map[string]any{"name": "a"}}
	return over(head, body.(map[string]any))
}

// over returns an object with some of its fields replaced, and the metadata merged.
func over(object, by map[string]any) map[string]any {
	for key, value := range by {
		old, _ := object[key].(map[string]any)
		if next, is := value.(map[string]any); is && key == "metadata" && old != nil {
			value = over(old, next)
		}
		object[key] = value
	}
	return object
}
