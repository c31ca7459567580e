// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/apiserver"
)

// Schemas returns the schemas of a CRD's versions, by version. A version without a schema has none here. The error says
// that the CRD cannot be read.
func Schemas(crd *unstructured.Unstructured) (map[string]apiserver.Schema, error) {
	content, err := json.Marshal(crd.Object["spec"])
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", crd.GetName(), err)
	}
	out, err := known.get(content)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", crd.GetName(), err)
	}
	return out, nil
}

// known has the schemas of the CRDs that this process has seen. Tests have a new server for each case and the same CRDs
// in all of them, and to compile rules takes longer than such a case.
var known cache

// cached is how many CRDs a cache remembers at most.
const cached = 500

// cache has schemas by the content of their CRDs. It is safe for use by several goroutines.
type cache struct {
	mu    sync.Mutex
	forms map[[sha256.Size]byte]map[string]apiserver.Schema
}

// get returns the schemas for the spec of a CRD in JSON.
func (c *cache) get(content []byte) (map[string]apiserver.Schema, error) {
	key := sha256.Sum256(content)
	c.mu.Lock()
	defer c.mu.Unlock()
	if out, found := c.forms[key]; found {
		return out, nil
	}
	var spec apiextensionsv1.CustomResourceDefinitionSpec
	if err := json.Unmarshal(content, &spec); err != nil {
		return nil, err
	}
	out, err := formsOf(&spec)
	if err != nil {
		return nil, err
	}
	if c.forms == nil || len(c.forms) >= cached {
		c.forms = map[[sha256.Size]byte]map[string]apiserver.Schema{}
	}
	c.forms[key] = out
	return out, nil
}

// formsOf returns the schemas of a CRD by version.
func formsOf(spec *apiextensionsv1.CustomResourceDefinitionSpec) (map[string]apiserver.Schema, error) {
	out := map[string]apiserver.Schema{}
	for i := range spec.Versions {
		f, err := newForm(spec, &spec.Versions[i])
		if err != nil {
			return nil, fmt.Errorf("the schema of version %s: %w", spec.Versions[i].Name, err)
		}
		if f != nil {
			out[spec.Versions[i].Name] = f
		}
	}
	return out, nil
}
