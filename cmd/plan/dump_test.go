// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestAPlanOfNothingIsAnError holds that a dump of something else makes no empty plan, and which children a dump lacks.
func TestAPlanOfNothingIsAnError(t *testing.T) {
	const site = "{apiVersion: example.com/v1, kind: Site, metadata: {namespace: shop, name: blog, uid: a}, spec: {}}\n"
	const deployment = "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: blog, uid: b}}\n"
	lacks := func(kinds ...string) (out []string) {
		for _, kind := range kinds {
			out = append(out, "the dump has no "+kind+"; one that exists in the cluster is planned as a new one")
		}
		return out
	}
	for name, tt := range map[string]struct {
		dump, says string
		warnings   []string
	}{
		"nothing":                    {"", "reading objects: none of the 0 objects is of a resource that the operator handles (sites.v1.example.com)", nil},
		"other objects":              {deployment, "none of the 1 objects is of a resource", nil},
		"a CRD without objects":      {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: sites.example.com}}", "", lacks("Deployment", "ConfigMap", "Secret")},
		"an object without children": {site, "", lacks("Deployment", "ConfigMap", "Secret")},
		"some children":              {site + deployment, "", lacks("ConfigMap", "Secret")},
	} {
		t.Run(name, func(t *testing.T) {
			op, _ := read(t, sites)
			objects := objectsOf(t, tt.dump)
			err := checkDump(op, objects)
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("it says %v, want %q", err, tt.says)
			}
			if err != nil {
				return
			}
			if diff := gocmp.Diff(tt.warnings, missingKinds(op, objects)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPausesAreNoted holds that a plan says what a pause keeps from it.
func TestPausesAreNoted(t *testing.T) {
	op, _ := read(t, sites)
	got := pausesIn(op, objectsOf(t, `
{apiVersion: example.com/v1, kind: Site, metadata: {namespace: shop, name: blog, annotations: {sites.handwerk.dev/paused: INC-2}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: sites-paused}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: other}}
`))
	want := []string{
		"Site shop/blog is paused (INC-2): its changes come when it is resumed",
		"the operator is paused, so the plan has only deletions at most; operator resume ends the pause",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestValuesOfSecretsAreHiddenWhereverTheyAre holds that a configuration which copies a value of a Secret does not bring it into a plan.
func TestValuesOfSecretsAreHiddenWhereverTheyAre(t *testing.T) {
	c := &Comparer{}
	c.hide(objectsOf(t, "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {long: c3dvcmRmaXNo, short: YQ==}}"))
	got := &Change{Fields: []Field{
		{"data.plain", "see swordfish", "none"},
		{"data.encoded", nil, "c3dvcmRmaXNo"},
		{"data.short", "a", "b"},
		{"spec.list", []any{map[string]any{"value": "swordfish"}}, nil},
		{"spec.both", "swordfish", "swordfish!"},
	}}
	c.hideIn(got)
	want := []Field{
		{"data.plain", hidden, "none"},
		{"data.encoded", nil, hidden},
		{"data.short", "a", "b"},
		{"spec.list", []any{map[string]any{"value": hidden}}, nil},
		{"spec.both", hidden, hiddenToo},
	}
	if diff := gocmp.Diff(want, got.Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// TestASchemaThatBreaksObjectsIsAWarning holds that a plan says that operator run would not start.
func TestASchemaThatBreaksObjectsIsAWarning(t *testing.T) {
	report := change(t, strings.Replace(sites, "page: boolean}", "page: boolean, size: integer | required=true}", 1), Job{})
	if len(report.Warnings) != 1 || !strings.HasPrefix(report.Warnings[0], "operator run --install-crds would not start: ") {
		t.Errorf("it warns of %q", report.Warnings)
	}
}
