// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestFit(t *testing.T) {
	t.Parallel()
	tree := func(namespace string) map[string]any {
		return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": namespace}}
	}
	for name, c := range map[string]struct {
		value  any
		own    string
		spec   dsl.ChildSpec
		hidden bool
		want   place
		err    string
	}{
		"an object without a namespace is in its owner's": {
			value: tree(""), own: "ns", want: place{"apps", "Deployment", "ns", "web"},
		},
		"a labelled object may be in another namespace": {
			value: tree("other"), own: "ns", spec: dsl.ChildSpec{Ownership: dsl.Labelled}, want: place{"apps", "Deployment", "other", "web"},
		},
		"an unowned object may be in another namespace": {
			value: tree("other"), own: "ns", spec: dsl.ChildSpec{Ownership: dsl.Unowned}, want: place{"apps", "Deployment", "other", "web"},
		},
		"an object of a cluster-scoped owner may be in any namespace": {
			value: tree("other"), want: place{"apps", "Deployment", "other", "web"},
		},
		"an owned object must be in its owner's namespace": {
			value: tree("other"), own: "ns",
			err: "an owned child is in its owner's namespace, ns, and not in other: leave the namespace out, or give the child ownership: labelled",
		},
		"a namespace that may be secret is not shown": {
			value: tree("other"), own: "ns", hidden: true,
			err: "an owned child is in its owner's namespace, ns, and not in " + dsl.Unshown + ": leave the namespace out, or give the child ownership: labelled",
		},
		"a list is not an object": {
			value: []any{}, err: "the template has to give an object, and gives a list",
		},
		"an object needs a kind": {
			value: map[string]any{"apiVersion": "v1"}, err: "kind is missing or no text: give it a value",
		},
		"an object needs a name that is text": {
			value: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": int64(1)}},
			err:   "metadata.name is missing or no text: give it a value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &object{child: &child{spec: c.spec}, hidden: c.hidden}
			err := o.fit(c.value, c.own)
			switch {
			case c.err == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case c.err == "" && o.place != c.want:
				t.Errorf("the place is %v, want %v", o.place, c.want)
			case c.err != "" && (err == nil || err.Error() != c.err):
				t.Errorf("got %v, want %s", err, c.err)
			}
		})
	}
}
