// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/handwerk-dev/handwerk/engine/access"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/rights"
)

// newAccess prepares what asks for the rights that feeds do not ask for themselves.
func (e *Engine) newAccess() *access.Monitor {
	s := access.Settings{
		Operator: e.op, Catalog: e.catalog, Reviews: e.clients.kubernetes.AuthenticationV1(), Log: e.log,
		Elsewhere: func(r rights.Rule) bool {
			return slices.ContainsFunc(e.feeds(), func(f *feed) bool { return f.asks(r) })
		},
		Given: func() {
			for _, r := range e.resources {
				r.granted()
			}
		},
	}
	if e.scope.live {
		s.Namespaces = func() []string {
			names, _ := e.scope.names(true)
			return names
		}
	}
	return access.New(s)
}

// missingRights are the rights that are missing, also those that feeds tell of, for metrics.
func (e *Engine) missingRights() []ops.MissingRight {
	counts := e.access.Missing()
	for _, f := range e.feeds() {
		f.countMissing(counts)
	}
	var out []ops.MissingRight
	for m, n := range counts {
		m.Namespaces = n
		out = append(out, m)
	}
	return out
}
