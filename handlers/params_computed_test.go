// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestParametersMayBeComputed(t *testing.T) {
	a := prepared(t, "call: test.Keep\nwith: {text: 'to ${self.spec.name}', count: '${self.spec.replicas}'}", foo)
	if err := a.run(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"kept": map[string]any{"text": "to web", "count": int64(3)}}
	if diff := cmp.Diff(want, a.request.Patch.Status); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	a = prepared(t, "call: test.Keep\nwith: {text: x, count: '${self.spec.name}'}", foo)
	if err := a.run(t); !dsl.IsPermanent(err) || !strings.Contains(err.Error(), "want a whole number that fits, found the text \"web\"") {
		t.Errorf("error %v", err)
	}
}
