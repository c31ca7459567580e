// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package related

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// earlier implements [dsl.Related] for the selection of one relation. It has the relations that this selection depends
// on. It is called while the lock of the view is held, by Select or by a Match that Select has returned.
type earlier struct {
	view *View
	of   *relation
}

var _ dsl.Related = earlier{}

// earlier returns the relations that the selection of a relation depends on; nil if it depends on the object alone.
func (v *View) earlier(one *relation) dsl.Related {
	if len(one.After) == 0 {
		return nil
	}
	return earlier{v, one}
}

// before returns why the objects that a selection depends on are missing: the error of their own selection, or the
// reason why they cannot be read. It subscribes to them. The lock is held.
func (v *View) before(one *relation) (err, unsynced error) {
	for _, name := range one.After {
		if other := v.index.named(name); other != nil && other.number < one.number {
			if s := v.seeLocked(other); s.err != nil || s.unsynced != nil {
				return s.err, s.unsynced
			}
		}
	}
	return nil, nil
}

// Relations returns the relations that the selection depends on.
func (e earlier) Relations() (out []dsl.Relation) {
	for _, one := range e.view.index.relations[:e.of.number] {
		if slices.Contains(e.of.After, one.Name) {
			out = append(out, one.Relation)
		}
	}
	return out
}

// Get returns the objects of one of these relations. All selections of a reconcile share them.
func (e earlier) Get(name string) ([]*unstructured.Unstructured, error) {
	one := e.view.index.named(name)
	if one == nil || !slices.Contains(e.of.After, name) || one.number >= e.of.number {
		return nil, dsl.Permanent(fmt.Errorf("reading related objects of %s: relation %s does not choose by them", name, e.of.Name))
	}
	if known, found := e.view.chosen[name]; found {
		return known, nil
	}
	out, err := e.view.seeLocked(one).trees(name)
	if err != nil {
		return nil, err
	}
	if e.view.chosen == nil {
		e.view.chosen = map[string][]*unstructured.Unstructured{}
	}
	e.view.chosen[name] = out
	return out, nil
}

// Absent returns nothing: only handlers use it.
func (earlier) Absent(string) string { return "" }
