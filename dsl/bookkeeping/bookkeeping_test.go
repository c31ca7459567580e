// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package bookkeeping

import "testing"

func TestWhichAnnotationsAreBookkeeping(t *testing.T) {
	tests := map[string]struct {
		key, value string
		is, mayBe  bool
	}{
		"a person's": {"example.com/note", "x", false, false},
		"a person's with a key like an operator's":    {"example.com/state", "x", false, true},
		"an operator's book":                          {"shop.example.com/state", StateMark + "2}", true, true},
		"what an operator's child was applied from":   {"shop.example.com/applied", AppliedMark + "x", true, true},
		"any of an operator's without its own domain": {"shop." + Domain + "/children", "x", true, true},
		"one whose key has our domain in its name":    {"example.com/" + Domain, "x", false, false},
		"kubectl's":                         {"kubectl.kubernetes.io/last-applied-configuration", "{}", true, true},
		"another one with kubectl's prefix": {"kubectl.kubernetes.io/restartedAt", "x", false, false},
		"the Deployment controller's":       {"deployment.kubernetes.io/revision", "3", true, true},
		"another one with its prefix":       {"deployment.kubernetes.io/revision-history", "3", false, false},
		"any of Kopf":                       {"kopf.zalando.org/last-handled-configuration", "{}", true, true},
		"of a kopf operator with a prefix":  {"shop.example.com/last-handled-configuration", "{}", true, true},
		"its mark, too":                     {"shop.example.com/kopf-managed", "yes", true, true},
		"Helm's":                            {"meta.helm.sh/release-name", "shop", true, true},
		"an instruction for Helm":           {"helm.sh/resource-policy", "keep", false, false},
		"Argo CD's":                         {"argocd.argoproj.io/tracking-id", "shop:apps/Foo:x/web", true, true},
		"an instruction for Argo CD":        {"argocd.argoproj.io/sync-wave", "3", true, true},
		"Flux'":                             {"kustomize.toolkit.fluxcd.io/checksum", "ab", true, true},
		"Flux' for Helm":                    {"helm.toolkit.fluxcd.io/driftDetection", "disabled", true, true},
		"a person's request to Flux":        {"reconcile.fluxcd.io/requestedAt", "now", false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if is, mayBe := Is(tt.key, tt.value), MayBe(tt.key); is != tt.is || mayBe != tt.mayBe {
				t.Errorf("%s is bookkeeping: %t, may be: %t; want %t, %t", tt.key, is, mayBe, tt.is, tt.mayBe)
			}
		})
	}
}

func TestWhichLabelsAreBookkeeping(t *testing.T) {
	tests := map[string]struct {
		key, value string
		is, mayBe  bool
	}{
		"a person's":                               {"team", "a", false, false},
		"what applications are selected by":        {"app.kubernetes.io/instance", "shop", false, false},
		"Flux' for what a Kustomization has":       {"kustomize.toolkit.fluxcd.io/name", "apps", true, true},
		"Flux' for what a HelmRelease has":         {"helm.toolkit.fluxcd.io/namespace", "apps", true, true},
		"Argo CD's, where it has one of its own":   {"argocd.argoproj.io/instance", "shop", true, true},
		"a person's for Argo CD":                   {"argocd.argoproj.io/secret-type", "cluster", false, false},
		"kubectl's for what an ApplySet has":       {"applyset.kubernetes.io/part-of", "x", true, true},
		"Helm's":                                   {"app.kubernetes.io/managed-by", "Helm", true, true},
		"another one's with Helm's key":            {"app.kubernetes.io/managed-by", "me", false, true},
		"an operator's without its own domain":     {"shop." + Domain + "/owner", "u", true, true},
		"one whose key has our domain in its name": {"example.com/" + Domain, "x", false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if is, mayBe := IsLabel(tt.key, tt.value), MayBeLabel(tt.key); is != tt.is || mayBe != tt.mayBe {
				t.Errorf("%s is bookkeeping: %t, may be: %t; want %t, %t", tt.key, is, mayBe, tt.is, tt.mayBe)
			}
		})
	}
}

func TestWhichFinalizersAreBookkeeping(t *testing.T) {
	for name, want := range map[string]bool{
		"shop." + Domain + "/finalizer": true, "kopf.zalando.org/KopfFinalizerMarker": true, "finalizers.fluxcd.io": true,
		"resources-finalizer.argocd.argoproj.io/background": true, "example.com/hold": false, "foregroundDeletion": false,
	} {
		if got := IsFinalizer(name); got != want {
			t.Errorf("%s is bookkeeping: %t", name, got)
		}
	}
}
