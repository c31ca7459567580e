// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestADataErrorNamesTheKey holds the texts of errors about data. A value begins with hush, and so does a key that may be one.
func TestADataErrorNamesTheKey(t *testing.T) {
	type tree = map[string]any
	for name, tt := range map[string]struct {
		data   tree
		hidden bool
		want   string
	}{
		"a key":                     {tree{"a": "hush!"}, false, "data.a is not base64: base64(…) encodes it, and stringData of a Secret or data of a ConfigMap takes plain text"},
		"the first of several keys": {tree{"c": "hush!", "b": int64(1), "a": "eA=="}, false, "data.b must be text: string(…) makes it text"},
		"a key with other letters":  {tree{"a/b": "eA=="}, false, `data["a/b"] is not a valid key`},
		"a long key":                {tree{strings.Repeat("a", 1000): "eA=="}, false, `…"] is not a valid key`},
		"a key that is a value":     {tree{"hush/b": "eA=="}, true, "a key of data, which is not shown because it may be a Secret's value, is not a valid key"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &unstructured.Unstructured{Object: tree{"apiVersion": "v1", "kind": "Secret", "data": tt.data}}
			err := dsl.CheckData(secret, tt.hidden)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hush") || len(err.Error()) > 300 {
				t.Errorf("it says %v, want %q", err, tt.want)
			}
			secret.SetAPIVersion("example.com/v1")
			if err := dsl.CheckData(secret, tt.hidden); err != nil {
				t.Errorf("of another kind: %v", err)
			}
		})
	}
}
