// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// TestBundleWritesHealthChecksForArgoCD holds that the patch has a health check of each kind of the operator, and that the
// kustomization does not apply it.
func TestBundleWritesHealthChecksForArgoCD(t *testing.T) {
	dir, b := t.TempDir(), standard(t)
	if code := b.execute(t.Context(), []string{"bundle", "--config=../samples/webapp", "--argocd", "-o", dir}); code != exitOK {
		t.Fatal(b.err.String())
	}
	files := filesOf(t, dir)
	var patch struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(files[argoFile]), &patch); err != nil {
		t.Fatal(err)
	}
	check := patch.Data["resource.customizations.health.samples.handwerk.dev_WebApp"]
	if len(patch.Data) != 1 || !strings.Contains(check, "Stalled") || !strings.Contains(check, `"waiting for the operator"`) {
		t.Errorf("the patch has %v", patch.Data)
	}
	if strings.Contains(files["kustomization.yaml"], argoFile) {
		t.Error("the kustomization names the patch")
	}
}

// TestArgoCDNeedsKindsOfTheOperator holds which bundles cannot have health checks.
func TestArgoCDNeedsKindsOfTheOperator(t *testing.T) {
	dir := t.TempDir()
	looks := filepath.Join(dir, "operator.yaml")
	text := "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: looks}\n" +
		"resources:\n- {resource: configmaps.v1, handlers: [{id: look, log: {message: seen}}]}\n"
	if err := os.WriteFile(looks, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"--argocd needs -o DIR":   {"--config=" + looks, "--argocd"},
		"has no kinds of its own": {"--config=" + looks, "--argocd", "-o", filepath.Join(dir, "out")},
	} {
		b := standard(t)
		if code := b.execute(t.Context(), append([]string{"bundle"}, args...)); code == exitOK || !strings.Contains(b.err.String(), want) {
			t.Errorf("operator bundle %q ends with %d: %s, want %q", args, code, b.err.String(), want)
		}
	}
}
