// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePath(t *testing.T) {
	tests := map[string]struct {
		text string
		want Path
		err  string
	}{
		"one key":                          {"spec", Path{"spec"}, ""},
		"keys joined by dots":              {"spec.template.metadata", Path{"spec", "template", "metadata"}, ""},
		"a leading dot, as in JSONPath":    {".spec.x", Path{"spec", "x"}, ""},
		"a quoted key":                     {`metadata.labels["app.kubernetes.io/name"]`, Path{"metadata", "labels", "app.kubernetes.io/name"}, ""},
		"keys behind a quoted key":         {`data["a.b"].c["d e"]`, Path{"data", "a.b", "c", "d e"}, ""},
		"nothing":                          {"", nil, "is not a field name"},
		"an empty key":                     {"spec..x", nil, "is not a field name"},
		"a dot at the end":                 {"spec.", nil, "is not a field name"},
		"a bracket that is not closed":     {`a["b`, nil, `no closing`},
		"an empty quoted key":              {`a[""]`, nil, "empty key"},
		"a list index":                     {"spec.containers[0]", nil, "unexpected"},
		"a key that must be quoted":        {"metadata.labels.app/name", nil, "quote it"},
		"text directly behind a quotation": {`a["b"]c`, nil, "unexpected"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePath(tt.text)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("ParsePath(%q) = %v, want error %q", tt.text, err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("path (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			if again, err := ParsePath(got.String()); err != nil || !cmp.Equal(got, again) {
				t.Errorf("%s is read back as %v, %v", got, again, err)
			}
		})
	}
}

func TestParseResourceName(t *testing.T) {
	tests := map[string]struct {
		want ResourceName
		ok   bool
	}{
		"deployments.v1.apps":                   {ResourceName{"deployments", "v1", "apps"}, true},
		"deployments.apps":                      {ResourceName{"deployments", "", "apps"}, true},
		"pods.v1":                               {ResourceName{"pods", "v1", ""}, true},
		"pods":                                  {ResourceName{"pods", "", ""}, true},
		"foos.v1alpha1.samplecontroller.k8s.io": {ResourceName{"foos", "v1alpha1", "samplecontroller.k8s.io"}, true},
		"foos.vendor.example.com":               {ResourceName{"foos", "", "vendor.example.com"}, true},
		"foos.v2.example.com":                   {ResourceName{"foos", "v2", "example.com"}, true},
		"Deployments.v1.apps":                   {ResourceName{}, false},
		"":                                      {ResourceName{}, false},
		"foos.v1.Example":                       {ResourceName{}, false},
		"apps/v1/deployments":                   {ResourceName{}, false},
	}
	for text, tt := range tests {
		got, err := ParseResourceName(text)
		if (err == nil) != tt.ok {
			t.Errorf("ParseResourceName(%q) = %v", text, err)
			continue
		}
		if tt.ok && (got != tt.want || got.String() != text) {
			t.Errorf("ParseResourceName(%q) = %+v, written %s", text, got, got)
		}
	}
}

// TestBuiltInKindsHaveTheNamesOfKubectl holds that other names of built-in kinds become the plural and the group.
func TestBuiltInKindsHaveTheNamesOfKubectl(t *testing.T) {
	for text, want := range map[string]string{
		"deploy": "deployments.apps", "deployments": "deployments.apps", "deployment": "deployments.apps", "Deployment": "deployments.apps",
		"deploy.apps": "deployments.apps", "Deployment.v1.apps": "deployments.v1.apps", "cm": "configmaps", "Pod.v1": "pods.v1",
		"ing": "ingresses.networking.k8s.io", "Ingress.v1.networking.k8s.io": "ingresses.v1.networking.k8s.io",
		"ev": "events", "Event.events.k8s.io": "events.events.k8s.io",
		// These are no other names: a version names a group, and a CRD's group is not known here.
		"deployments.v1": "deployments.v1", "deploy.example.com": "deploy.example.com", "widgets": "widgets",
	} {
		got, err := ParseResourceName(text)
		if err != nil || got.String() != want {
			t.Errorf("ParseResourceName(%q) = %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"Widget", "Deployment.v1", "Deployment.example.com"} {
		if got, err := ParseResourceName(text); err == nil || !strings.Contains(err.Error(), "is not the plural name of a resource (want lower case, as in deployments.v1.apps)") {
			t.Errorf("ParseResourceName(%q) = %s, %v, want an error that says what to write", text, got, err)
		}
	}
}

func TestMatch(t *testing.T) {
	set := map[string]string{"tier": "gold", "empty": ""}
	for name, tt := range map[string]struct {
		match Match
		want  bool
	}{
		"the same value":              {Match{Key: "tier", Value: "gold"}, true},
		"another value":               {Match{Key: "tier", Value: "lead"}, false},
		"an empty value is a value":   {Match{Key: "empty"}, true},
		"a missing key has no value":  {Match{Key: "other"}, false},
		"a key that is there":         {Match{Key: "empty", Op: Exists}, true},
		"a key that is not there":     {Match{Key: "other", Op: Exists}, false},
		"a key that must be missing":  {Match{Key: "other", Op: Absent}, true},
		"a key that must not be here": {Match{Key: "tier", Op: Absent}, false},
	} {
		if got := tt.match.Matches(set); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
