// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// reads returns the fields that the Go function of a handler reads; nil if its author does not say so.
func (w *watched) reads(at path, h *making, fields []dsl.Path) []dsl.Path {
	if at = at.Key("reads"); !w.Has(at) {
		return nil
	}
	does, _ := content(&h.doing, h.Steps)
	if does.action != "call" && does.action != useKey {
		w.FaultKey(at, "is only for handlers that call a Go function: what other actions read is known")
		return nil
	}
	sees := &shape.Kept{Reader: h.ID}
	for i, field := range fields {
		w.known(at.Index(i), field)
		sees.Fields = append(sees.Fields, field)
	}
	if name, is := does.config.(*string); is {
		if function, found := w.loader.registry.LookupFunction(*name); found {
			if err := function.LeftOut(sees); err != nil {
				w.Fault(at, "%v", err)
			}
		}
	}
	return append([]dsl.Path{}, fields...)
}
