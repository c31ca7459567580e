// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Parts are the records of sub-handlers by id. They have no cause and no view of their own: those of their handler
// apply. They are immutable.
type Parts struct {
	Of map[string]Record `json:"of"`
}

// Get returns a record; an unknown id has a new one.
func (p *Parts) Get(id string) Record {
	if p == nil {
		return Record{}
	}
	return p.Of[id]
}

// With returns the parts with one record replaced.
func (p *Parts) With(id string, r Record) *Parts {
	out := &Parts{Of: map[string]Record{}}
	if p != nil {
		maps.Copy(out.Of, p.Of)
	}
	out.Of[id] = r
	return out
}

// Only returns the parts of some ids; nil if none of them is known.
func (p *Parts) Only(ids []string) (out *Parts) {
	for _, id := range ids {
		if p != nil && p.Of[id] != (Record{}) {
			out = out.With(id, p.Of[id])
		}
	}
	return out
}

// each returns the parts with each record changed; if nothing changes, the same parts.
func (p *Parts) each(change func(Record) Record) *Parts {
	out := p
	if p == nil {
		return nil
	}
	for id, r := range p.Of {
		if changed := change(r); changed != r {
			out = out.With(id, changed)
		}
	}
	return out
}

// Rerun returns the parts for a handler that runs again because another object has changed. Finished sub-handlers
// must run again, because their results may be out of date.
func (p *Parts) Rerun() *Parts {
	if p == nil {
		return nil
	}
	var open []string
	for id, r := range p.Of {
		if !r.Done {
			open = append(open, id)
		}
	}
	return p.Only(open).each(func(r Record) Record {
		r.Step, r.Parts = 0, r.Parts.Rerun()
		return r
	})
}

// Mark identifies parts with their progress.
func (p *Parts) Mark() string {
	if p == nil {
		return ""
	}
	text, _ := json.Marshal(p) // parts always marshal
	return string(text)
}

// Finished identifies which sub-handlers have finished.
func (p *Parts) Finished() string {
	if p == nil {
		return ""
	}
	var out []string
	for _, id := range slices.Sorted(maps.Keys(p.Of)) {
		if r := p.Of[id]; r.Done {
			out = append(out, id)
		} else if inner := r.Parts.Finished(); inner != "" {
			out = append(out, id+"("+inner+")")
		}
	}
	return strings.Join(out, ",")
}
