// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
)

// Quiesce returns when an operator has processed everything that happened to these objects before. Twice in a row,
// it creates an object that marker makes from a name, "marker-" and a random suffix, waits until handled is true,
// deletes it, and waits until it is gone.
//
// The events of one resource come over one stream, in order. So the first marker proves that the operator has
// received all earlier events; while the second one passes through the whole operator, keys that were queued before
// the first one was done are processed. A correct operator therefore never fails a test because of Quiesce, and one
// that writes needlessly is caught, unless its workers are slower than two markers. For children, handled should
// check something that the operator can only know from the marker's own child.
//
// [Writes.Of] recognises the markers' own requests.
func (o *Objects) Quiesce(t testing.TB, marker func(name string) *unstructured.Unstructured, handled func(*unstructured.Unstructured) bool) {
	t.Helper()
	for range 2 {
		name := "marker-" + rand.String(8)
		o.Create(t, marker(name))
		o.Await(t, name, "the handling", handled)
		o.Delete(t, name)
		o.AwaitGone(t, name)
	}
}
