// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cause

import "github.com/handwerk-dev/handwerk/dsl"

// Views are digests of what handlers look at, by the handler's field as text; "" is the whole
// essence.
type Views map[string]string

// ViewsOf digests the essence for each of the fields. An empty path is the whole essence.
func ViewsOf(essence map[string]any, fields []dsl.Path) Views {
	views := make(Views, len(fields))
	for _, f := range fields {
		views[f.String()] = Digest(View(essence, f))
	}
	return views
}

// Facts are what is known of an object when a pass begins.
type Facts struct {
	// Deleting: the object has a deletion timestamp, or is gone.
	Deleting bool
	// Handled: a base is stored for the object.
	Handled bool
	// Now and Base digest the object as it is and as it was when it was last handled whole.
	Now, Base Views
	// First: this process has not finished a pass over the object yet.
	First bool
	// Fresh: the object appeared after the first listing, so it is new.
	Fresh bool
	// Stores: for this resource a base is kept on the objects. Without one, what is new and what
	// has changed is known only for the life of the process.
	Stores bool
}

// Lasting returns the cause that a handler has by what is stored on the object: a cause that
// outlives the process. Seen is the digest of what the handler last finished with since the base
// was stored, or empty. The result is empty when there is no such cause.
//
// Level-triggered handlers have no lasting causes but Delete: resume does the same for them.
func (f Facts) Lasting(h *dsl.Handler, seen string) dsl.Cause {
	if f.Deleting {
		if h.On(dsl.Delete) {
			return dsl.Delete
		}
		return ""
	}
	if h.Level() {
		return ""
	}
	now := f.Now[h.Field.String()]
	if !f.Handled {
		if h.On(dsl.Create) && seen != now && present(h, now) {
			return dsl.Create
		}
		return ""
	}
	before, known := f.Base[h.Field.String()]
	if seen != "" {
		before = seen
	} else if !known {
		return "" // a handler that is new to an object which was handled before
	}
	if h.On(dsl.Update) && before != now {
		return dsl.Update
	}
	return ""
}

// Arising returns the cause that a handler has by what this process has seen. Seen is the digest
// of what the handler last finished with in this process, or empty. The result is empty when
// there is no such cause.
func (f Facts) Arising(h *dsl.Handler, seen string) dsl.Cause {
	now := f.Now[h.Field.String()]
	switch {
	case f.Deleting:
		return ""
	case h.Level() && seen != "" && seen != now:
		return dsl.Update
	case !f.First || seen != "" || !present(h, now):
		return ""
	case f.isNew():
		if h.Level() {
			return dsl.Create
		}
	case h.On(dsl.Resume):
		return dsl.Resume
	}
	return ""
}

// Appearing returns Update for a level-triggered handler that had nothing to do so far, because
// its field was not there, and now has. Seen is as for Arising, which comes first.
func (f Facts) Appearing(h *dsl.Handler, seen string) dsl.Cause {
	if f.Deleting || f.First || seen != "" || !h.Level() || !present(h, f.Now[h.Field.String()]) {
		return ""
	}
	return dsl.Update
}

func (f Facts) isNew() bool {
	if f.Stores {
		return !f.Handled
	}
	return f.Fresh
}

// present reports whether there is something for the handler to see: a handler with a field does
// not run for create and resume when the object lacks it.
func present(h *dsl.Handler, view string) bool {
	return len(h.Field) == 0 || view != Digest(nil)
}
