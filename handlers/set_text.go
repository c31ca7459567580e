// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// The API server's limits in bytes: for all annotations of an object, and for a condition's reason and message if
// the CRD has the type of Kubernetes.
const (
	mostAnnotations = 256 << 10
	mostReason      = 1024
	mostMessage     = 32768
)

// setText sets a label or an annotation; nil removes it. An invalid text fails only this handler: if it were sent,
// the API server would refuse the changes of all handlers.
func setText(r *dsl.Request, what, key string, value any) error {
	path, text := dsl.Path{"metadata", what, key}.String(), ""
	switch value := value.(type) {
	case nil:
		r.Patch.Remove(path)
		return nil
	case string, bool, int64, float64:
		text = plain.Text(value)
	default:
		return dsl.Permanent(fmt.Errorf("setting %s.%s: want text, found a list or a map", what, key))
	}
	if what == "annotations" && len(key)+len(text) > mostAnnotations {
		return dsl.Permanent(fmt.Errorf("setting %s.%s: want at most %d KiB, found %d", what, key, mostAnnotations>>10, len(text)>>10))
	}
	if wrong := validation.IsValidLabelValue(text); what == "labels" && len(wrong) > 0 {
		return dsl.Permanent(fmt.Errorf("setting labels.%s: %s is no value of a label: %s", key, r.Secrets.Shown(text), wrong[0]))
	}
	r.Patch.Set(path, text)
	return nil
}
