// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/cause"
)

// Recall gives a subject what its handler handled last, and how that differs from what it sees now; nothing where old
// is nil.
func Recall(of *dsl.Subject, r book.Reader, old map[string]any, now *book.Look) {
	if old == nil {
		return
	}
	of.Old = runtime.DeepCopyJSON(old)
	changes := cause.Diff(of.Old, runtime.DeepCopyJSON(now.Kept(r.View)))
	paths := r.View.Fields
	if len(paths) == 0 {
		of.Diff = changes
	}
	for _, path := range paths {
		of.Diff = append(of.Diff, cause.Within(changes, path)...)
	}
}
