// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
)

// Quiesce returns when an operator has come past all that happened to these objects before: twice in
// a row it creates what marker makes of a name, "marker-" and something random, waits until handled,
// deletes it and waits until it is gone.
//
// The events of one resource come over one stream, in order. So the first marker proves that the
// operator was told of everything before; while the second one passes through the whole operator,
// keys that were queued before the first one was done get their turn. A correct operator therefore
// never fails a test because of Quiesce, and one that writes needlessly is caught, save where its
// workers are slower than two markers. For children, handled should ask for something that the
// operator can only know from the marker's own child.
//
// The markers' own requests are told apart by [Writes.Of].
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
