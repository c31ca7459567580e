// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestValidateWarnsOfACRDThatIsNotTheConfigurations holds that a CRD beside the configuration is compared with the one that it
// describes, and that the warning has the file and the field.
func TestValidateWarnsOfACRDThatIsNotTheConfigurations(t *testing.T) {
	crd, err := os.ReadFile("../samples/webapp/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const begins = ": the CRD webapps.samples.handwerk.dev is not the one that the configuration describes: another "
	tests := map[string]struct{ old, new, want string }{
		"the same":              {},
		"in another order":      {"kind: CustomResourceDefinition\n", "", ""},
		"another default":       {"default: 1\n", "default: 2\n", "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.replicas.default"},
		"a field less":          {"  scope: Namespaced\n", "", "spec.scope"},
		"of another kind":       {"kind: CustomResourceDefinition", "kind: Sample", ""},
		"of another name":       {"name: webapps.samples.handwerk.dev", "name: others.example.com", ""},
		"no YAML":               {"spec:\n", "spec: [\n", ""},
		"another name of lists": {"listKind: ", "listKind: Other", "spec.names.listKind"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("../samples/webapp")); err != nil {
				t.Fatal(err)
			}
			text := strings.Replace(string(crd), tt.old, tt.new, 1)
			if tt.old != "" && text == string(crd) {
				t.Fatalf("the CRD has no %q", tt.old)
			}
			if name == "in another order" {
				text += tt.old
			}
			if err := os.WriteFile(filepath.Join(dir, "crd.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			b := standard(t)
			if code := b.execute(t.Context(), []string{"validate", "--config", filepath.Join(dir, "operator.yaml")}); code != exitOK {
				t.Fatal(b.err.String())
			}
			want := ""
			if tt.want != "" {
				want = "warning: " + filepath.Join(dir, "crd.yaml") + begins + tt.want + " (operator crd prints the one that is)\n"
			}
			if got := b.err.String(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
