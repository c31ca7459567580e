// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
)

// places has the desired objects of all levels so far, by their place.
type places map[place]*object

// add adds the objects of a level. It fails those that are the same as another one, or as one of an earlier level.
func (p places) add(level []*state) {
	here := map[place][]*object{}
	for _, st := range level {
		for _, o := range st.objects {
			here[o.place] = append(here[o.place], o)
		}
	}
	for at, objects := range here {
		rivals := objects
		if earlier := p[at]; earlier != nil {
			rivals = append([]*object{earlier}, objects...)
		} else {
			p[at] = objects[0]
		}
		if len(rivals) == 1 {
			continue
		}
		var labels []string
		for _, o := range rivals {
			labels = append(labels, o.called)
		}
		for _, o := range objects {
			o.err = wrong(reasonNameCollision, "%s come out as the same object: give each a name of its own", strings.Join(labels, " and "))
		}
	}
}

// without returns those of the existing objects that are not desired. It compares objects, and not the names of
// children, because an object may now belong to another child. It also compares the place where an object was
// applied, because a template of a cluster-scoped kind may contain a namespace. Own is the owner's namespace.
func (p places) without(found []dsl.ChildObject, own string) []dsl.ChildObject {
	has := p.having(own)
	return slices.DeleteFunc(found, func(one dsl.ChildObject) bool {
		o := one.Object
		return has(dsl.SettledChild{Kind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()})
	})
}

// having returns a function that reports whether an existing object is desired.
func (p places) having(own string) func(dsl.SettledChild) bool {
	applied := map[types.UID]bool{}
	for _, o := range p {
		if uid := o.uid(); uid != "" {
			applied[uid] = true
		}
	}
	return func(one dsl.SettledChild) bool { return p[placeIn(&one, own)] != nil || applied[one.UID] }
}
