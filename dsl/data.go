// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// DataError names data of a Secret or ConfigMap that the API server would reject. It never quotes a value. The API
// server itself often answers with a status code alone, or quotes the value.
type DataError struct {
	// Field is the path of the map, such as data or metadata.labels, and Key is the key in it. Key is empty when the map itself is wrong.
	Field, Key string
	// Problem says what is wrong.
	Problem string
	// Hidden means that the text does not have the key, because the key may be a value of a Secret.
	Hidden bool
}

// Error names the field, the key and the problem.
func (e *DataError) Error() string {
	switch {
	case e.Key == "":
		return e.Field + " " + e.Problem
	case e.Hidden:
		return fmt.Sprintf("a key of %s, which is not shown because it may be a Secret's value, %s", e.Field, e.Problem)
	case len(validation.IsConfigMapKey(e.Key)) > 0:
		return fmt.Sprintf("%s[%q] %s", e.Field, plain.Short(e.Key, longestShown), e.Problem)
	}
	return fmt.Sprintf("%s.%s %s", e.Field, e.Key, e.Problem)
}

// dataFields are the maps of Secrets and ConfigMaps, with the kind whose values must be base64.
var dataFields = []struct {
	path    []string
	encoded string
	keys    bool
}{
	{path: []string{"data"}, encoded: "Secret", keys: true},
	{path: []string{"stringData"}, keys: true},
	{path: []string{"binaryData"}, encoded: "ConfigMap", keys: true},
	{path: []string{"metadata", "labels"}},
	{path: []string{"metadata", "annotations"}},
}

// CheckData returns a [*DataError] if the API server would reject the maps of a Secret or ConfigMap. Values must be
// text, or base64 in data of a Secret and binaryData of a ConfigMap, and keys must be valid. Objects of other kinds
// pass. Hidden is the field of the error.
func CheckData(o *unstructured.Unstructured, hidden bool) error {
	kind := o.GetKind()
	if o.GetAPIVersion() != "v1" || kind != "Secret" && kind != "ConfigMap" {
		return nil
	}
	for _, of := range dataFields {
		field := strings.Join(of.path, ".")
		value, found, err := unstructured.NestedFieldNoCopy(o.Object, of.path...)
		entries, isMap := value.(map[string]any)
		if err != nil || found && value != nil && !isMap {
			return &DataError{Field: field, Problem: "must be a map"}
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if problem := dataProblem(key, entries[key], of.keys, of.encoded == kind); problem != "" {
				return &DataError{Field: field, Key: key, Problem: problem, Hidden: hidden}
			}
		}
	}
	return nil
}

// dataProblem says what is wrong with one entry of a map; it is empty if nothing is.
func dataProblem(key string, value any, strictKey, encoded bool) string {
	if strictKey {
		if problem := DataKeyProblem(key); problem != "" {
			return problem
		}
	}
	text, isText := value.(string)
	switch _, err := base64.StdEncoding.DecodeString(text); {
	case value == nil:
	case !isText:
		return "must be text: string(…) makes it text"
	case encoded && err != nil:
		return "is not base64: base64(…) encodes it, and stringData of a Secret or data of a ConfigMap takes plain text"
	}
	return ""
}

// DataKeyProblem says why a Secret or ConfigMap cannot have a key in its data; it is empty if it can.
func DataKeyProblem(key string) string {
	if key == "" {
		return "has an empty key, which is not valid"
	}
	if len(validation.IsConfigMapKey(key)) == 0 {
		return ""
	}
	return fmt.Sprintf("is not a valid key: want letters, digits, '-', '_' and '.', at most %d, and neither . nor ..", validation.DNS1123SubdomainMaxLength)
}
