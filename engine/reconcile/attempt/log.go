// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// About is the subject of log lines: an object, unless the key is empty, and an attempt, unless the handler is empty.
type About struct {
	Key     cache.ObjectName
	Handler string
	Cause   dsl.Cause
	Attempt int
}

// Log returns a log whose lines have the subject.
func (a About) Log(log logr.Logger) logr.Logger { return logmark.Later(log, a.values) }

func (a About) values() (out []any) {
	if a.Key.Name != "" {
		out = append(out, "namespace", a.Key.Namespace, "name", a.Key.Name)
	}
	if a.Handler != "" {
		out = append(out, "handler", a.Handler, "cause", string(a.Cause), "attempt", a.Attempt)
	}
	return out
}
