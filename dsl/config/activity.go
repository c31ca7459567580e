// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// activities adds the operator's activities for a cause, which is also their key in the document.
func (l *loader) activities(op *dsl.Operator, p *part, c dsl.Cause, all []handler) {
	for i := range all {
		at := path(c).Index(i)
		h := &making{handler: &all[i], kind: dsl.ActivityHandler, starts: c == dsl.Startup}
		if c == dsl.HealthProbe || c == dsl.ReadyProbe {
			h.kind = dsl.ProbeHandler
		}
		w := newWatched(compiling{p, l, &dsl.Resource{}, l.lets}, &resource{}).forHandler(at, h)
		out, _ := w.built(at, h)
		out.Known.Reads = dsl.KnownReads{} // activities do not need them; the checks report unknown indexes with their place
		l.places[op.AddActivity(c, out)] = place{p, at}
		op.Checks = append(op.Checks, w.out.Checks...)
		for _, check := range w.out.Checks {
			for _, err := range check(shape.Schemas{}) { // the operator's own checks cover indexes
				if fault, is := errors.AsType[source.Fault](err); is && !fault.Warning {
					p.found = append(p.found, fault)
				}
			}
		}
	}
}
