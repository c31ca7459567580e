// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/handwerk-dev/handwerk/dsl/crd"
)

// refusedByTheServer are the faults that the whole of the API server's code finds in a CRD. It is
// too large for the program itself.
func refusedByTheServer(t *testing.T, tree map[string]any) field.ErrorList {
	t.Helper()
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	given, internal := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{}
	if err := json.Unmarshal(data, given); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(given)
	if len(given.Status.StoredVersions) == 0 {
		given.Status.StoredVersions = []string{given.Spec.Versions[0].Name}
	}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(given, internal, nil); err != nil {
		t.Fatal(err)
	}
	return validation.ValidateCustomResourceDefinition(request.NewContext(), internal)
}

// TestTheServerAgrees has schemas in short form at the border of what is allowed: what is refused here
// is refused by the API server, and what is accepted is accepted.
func TestTheServerAgrees(t *testing.T) {
	const types = `
User: {name: string | required=true, tags: "[]string"}
Tags: "[]string | listType=set"
Keyed: {name: string | required=true, list: "[]string | required=true", mode: string | default=a maxLength=5 immutable=true}
Short: string | maxLength=10
Fixed: string | immutable=true maxLength=10
Ruled: string | maxLength=1000 validation="self.split(',').all(p, p.matches('^[a-z]+$'))"
`
	accepted, texts := 0, []string{
		`string | validation=" "`,
		"string | validation=\"self != 'a'\n && self != 'b'\"",
		"string | validation=\"self != 'a'\n\" message=b",
		"string | validation=\"self != 'a'\" message=\"a\nb\"",
		`string | validation="self != 'a'" message=" "`,
		`[]Tags | listType=set`,
		`[]Tags`,
		`[]User | listMapKey=tags`,
		`[]Keyed | listMapKey=list`,
		`[]User | listMapKey="name,name"`,
		`[]User | listType=map`,
		`[]string | listType=map`,
		`[]User | listType=set listMapKey=name`,
		`[]User | listType=atomic listMapKey=name`,
		`[]Keyed | listMapKey=mode`,
		`[]Keyed | listMapKey="name,mode"`,
		`[]Keyed | listType=atomic`,
		`map[string]Fixed`,
		`[]Fixed`,
		`[]Fixed | listType=set`,
		`map[string][]Fixed`,
		`object | validation="self.a == 'b'"`,
		`object | validation="true"`,
		`int-or-string | validation="self == 1"`,
		`quantity | default="1Gi" validation="quantity(self).isInteger()"`,
		`date | default="2020-13-01"`,
		`datetime | validation="self > oldSelf"`,
		`string | default=a validation="self != 'a'"`,
		`string | default=a validation="self != oldSelf"`,
		`integer | default=1 minimum=2`,
		`string | format=uuid default=a`,
		`string | pattern="(?!a)"`,
		`string | enum="a,b" default=c`,
		`[]string | maxItems=100 validation="self.all(a, self.all(b, a != b))"`,
		`[]Short | maxItems=100 validation="self.all(a, self.all(b, a != b))"`,
		`map[string]string | validation="self.all(k, self[k] != '')"`,
		`map[string]string | maxProperties=9 validation="self.all(k, self[k].matches('^a+$'))"`,
		`[]Ruled | maxItems=9`,
		`[]Ruled`,
		`map[string]Ruled`,
		`[][]Ruled | maxItems=1000`,
		`map[string]Ruled | maxProperties=10`,
	}
	for _, text := range texts {
		t.Run(text, func(t *testing.T) {
			form := &crd.Schema{Kind: "WebApp", Spec: fields(t, map[string]any{"f": text}), Types: fields(t, read(t, types))}
			whole, err := crd.Unchecked(webapps, form)
			if err != nil {
				t.Fatal(err)
			}
			_, faults := crd.Build(webapps, form)
			refused := refusedByTheServer(t, whole)
			if len(faults) == 0 {
				accepted++
			}
			if (len(faults) == 0) != (len(refused) == 0) {
				t.Errorf("faults here:\n%s\nfaults on the API server:\n%v", said(faults), refused.ToAggregate())
			}
		})
	}
	if accepted < 5 || accepted > len(texts)-5 {
		t.Errorf("%d of %d fields are accepted", accepted, len(texts))
	}
}

// TestRulesThatCostTooMuchTogether has rules, each of them cheap enough.
func TestRulesThatCostTooMuchTogether(t *testing.T) {
	spec := map[string]any{}
	for i := range 30 {
		spec[fmt.Sprintf("f%02d", i)] = `[]string | maxItems=1000 validation="self.all(a, self.exists(b, b.size() > 1))"`
	}
	tree, faults := crd.Build(webapps, &crd.Schema{Kind: "WebApp", Spec: fields(t, spec)})
	if tree != nil {
		t.Fatal("they are accepted")
	}
	if len(faults) != 1 || faults[0].Column == 0 {
		t.Errorf("got %s, want one fault at a rule", said(faults))
	}
}
