// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// TestNamespacesShareADictionary holds that many namespaces with few objects each do not have a dictionary of 35 KB each, and
// that sources which hold objects in another form do not share theirs.
func TestNamespacesShareADictionary(t *testing.T) {
	s := New(Settings{Dynamic: newServer().dynamic})
	defer s.Close()
	presses := map[*cached.Compressor]int{}
	for i := range 20 {
		for _, keep := range []string{"", "spec.replicas"} {
			h, err := s.Open(t.Context(), Source{GVR: foos, Namespace: fmt.Sprintf("namespace-%d", i), Form: cached.Form{Keep: keep}}, ignore)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			presses[h.informer.press]++
		}
	}
	if len(presses) != 2 {
		t.Errorf("sources of two forms have %d dictionaries, want 2", len(presses))
	}
}
