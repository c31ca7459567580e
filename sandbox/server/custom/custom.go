// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapispec "k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// Schemas returns the schemas of a CRD's versions, by version. A version without a schema has none here. The error says
// that the CRD is invalid.
func Schemas(crd *unstructured.Unstructured) (map[string]server.Schema, error) {
	f, err := factsOf(crd.Object["spec"])
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", crd.GetName(), err)
	}
	out, err := f.forms()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", crd.GetName(), err)
	}
	return out, nil
}

// facts are what follows from the spec of a CRD. Each is found when it is asked for.
type facts struct {
	spec apiextensionsv1.CustomResourceDefinitionSpec
	// forms are the schemas by version.
	forms func() (map[string]server.Schema, error)
	// faults are what is wrong with the spec.
	faults func() field.ErrorList
}

// known has the facts of the CRDs that this process has seen. Tests have a new server for each case and the same CRDs in
// all of them, and to compile rules takes longer than such a case.
var known cache

// cached is how many CRDs a cache remembers at most.
const cached = 500

// cache has facts by the content of specs. It is safe for use by several goroutines.
type cache struct {
	mu    sync.Mutex
	facts map[[sha256.Size]byte]*facts
}

// factsOf returns the facts of a spec.
func factsOf(spec any) (*facts, error) {
	content, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	return known.get(content)
}

// get returns the facts of a spec in JSON.
func (c *cache) get(content []byte) (*facts, error) {
	key := sha256.Sum256(content)
	c.mu.Lock()
	defer c.mu.Unlock()
	if out, found := c.facts[key]; found {
		return out, nil
	}
	out := &facts{}
	if err := json.Unmarshal(content, &out.spec); err != nil {
		return nil, err
	}
	out.forms = sync.OnceValues(func() (map[string]server.Schema, error) { return formsOf(&out.spec) })
	out.faults = sync.OnceValue(func() field.ErrorList { return faultsOf(&out.spec) })
	if c.facts == nil || len(c.facts) >= cached {
		c.facts = map[[sha256.Size]byte]*facts{}
	}
	c.facts[key] = out
	return out, nil
}

// faultsOf returns what is wrong with a spec.
func faultsOf(spec *apiextensionsv1.CustomResourceDefinitionSpec) field.ErrorList {
	var internal apiextensions.CustomResourceDefinitionSpec
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec(spec.DeepCopy(), &internal, nil); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), "", err.Error())}
	}
	return checkSpec(&internal)
}

// formsOf returns the schemas of a CRD by version.
func formsOf(crd *apiextensionsv1.CustomResourceDefinitionSpec) (map[string]server.Schema, error) {
	out, all := map[string]server.Schema{}, []*form(nil)
	types := sync.OnceValue(func() managedfields.TypeConverter { return typesOf(all, crd.PreserveUnknownFields) })
	for i := range crd.Versions {
		f, err := newForm(crd, &crd.Versions[i])
		if err != nil {
			return nil, fmt.Errorf("the schema of version %s: %w", crd.Versions[i].Name, err)
		}
		if f != nil {
			f.types, all = types, append(all, f)
			out[crd.Versions[i].Name] = f
		}
	}
	return out, nil
}

// typesOf returns the types of the fields of all versions, as their OpenAPI documents have them; nil if these have an error.
func typesOf(all []*form, preserve bool) managedfields.TypeConverter {
	components := map[string]*openapispec.Schema{}
	for _, f := range all {
		maps.Copy(components, f.components())
	}
	out, err := managedfields.NewTypeConverter(components, preserve)
	if err != nil {
		return nil
	}
	return out
}
