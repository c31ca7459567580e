// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// keepsSecrets is a handler that keeps Secrets of these names. More are other fields of it.
func keepsSecrets(id, options string, names []string, more ...string) string {
	var children []string
	for _, name := range names {
		children = append(children, name+`: {`+options+`template: {apiVersion: v1, kind: Secret, metadata: {name: `+name+`}}}`)
	}
	return `{` + strings.Join(append([]string{"id: " + id, "apply: {" + strings.Join(children, ", ") + "}"}, more...), ", ") + `}`
}

// TestAChildThatMovesToAnotherHandler: a child that another handler of the next version keeps is the same object afterwards,
// and it is never deleted.
func TestAChildThatMovesToAnotherHandler(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options string
		more    []string
	}{
		"owned": {}, "labelled": {"ownership: labelled, ", nil}, "behind the one that had it": {"", []string{"after: [one]"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newVersionStage(t)
			names := []string{"a", "b", "c", "d", "e", "f"}
			s.works.Create(t, work("w", "a"))
			s.version(t, s.ns, keepsSecrets("one", test.options, names))
			before := map[string]types.UID{}
			for _, name := range names {
				before[name] = is(t, s.secrets, name, "one/"+name)
			}
			mark := plane.Mark(t)
			s.version(t, s.ns, keepsSecrets("one", test.options, names[:1]), keepsSecrets("two", test.options, names[1:5], test.more...))
			for _, name := range names[1:5] {
				if after := is(t, s.secrets, name, "two/"+name); after != before[name] {
					t.Errorf("Secret %s was deleted and created again", name)
				}
			}
			s.secrets.AwaitGone(t, "f")
			for _, name := range names[:5] {
				for _, w := range plane.Writes(t, s.user.Name, mark).Of("secrets", name) {
					if w.Verb != "patch" {
						t.Errorf("%s was written by %s", name, w)
					}
				}
			}
		})
	}
}

// TestALabelledChildThatTheNextVersionDropsGoesWithItsOwner: an owner that is deleted between two versions takes along the
// labelled children that the second one does not know.
func TestALabelledChildThatTheNextVersionDropsGoesWithItsOwner(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"its handler has other templates": {keepsSecrets("one", "", []string{"c"})}, "its handler is there no more": {marks},
	}
	for name, next := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newVersionStage(t)
			s.works.Create(t, work("w", "a"))
			s.version(t, s.ns, keepsSecrets("one", "ownership: labelled, ", []string{"a", "b"}))
			is(t, s.secrets, "a", "one/a")
			is(t, s.secrets, "b", "one/b")
			s.running.Stop(t)
			s.running = nil
			s.works.Delete(t, "w")
			s.version(t, s.ns, next...)
			s.works.AwaitGone(t, "w")
			for _, name := range []string{"a", "b"} {
				s.secrets.AwaitGone(t, name)
			}
		})
	}
}
