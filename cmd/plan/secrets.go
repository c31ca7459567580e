// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/base64"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// leastSecret is the length in bytes of the shortest value that is looked for outside of its Secret. Shorter ones stand in many texts.
const leastSecret = 6

// secrets are values of Secrets, as they are and in base64. A configuration may copy them to other objects.
type secrets []string

// add adds the values of a Secret; other objects have none.
func (s *secrets) add(o *unstructured.Unstructured) {
	if o == nil || o.GetKind() != "Secret" || o.GetAPIVersion() != "v1" {
		return
	}
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	for _, encoded := range data {
		value, err := base64.StdEncoding.DecodeString(encoded)
		if err == nil && len(value) >= leastSecret {
			*s = append(*s, encoded, string(value))
		}
	}
	plain, _, _ := unstructured.NestedStringMap(o.Object, "stringData")
	for _, value := range plain {
		if len(value) >= leastSecret {
			*s = append(*s, value, base64.StdEncoding.EncodeToString([]byte(value)))
		}
	}
}

// mask returns a value in which the texts with a value of a Secret are hidden.
func (s secrets) mask(value any) any {
	switch v := value.(type) {
	case string:
		for _, secret := range s {
			if strings.Contains(v, secret) {
				return hidden
			}
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[key] = s.mask(inner)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, inner := range v {
			out = append(out, s.mask(inner))
		}
		return out
	}
	return value
}
