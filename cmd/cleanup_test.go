// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/cleanup"
)

// TestCleanupAsks holds that nothing is changed without a yes.
func TestCleanupAsks(t *testing.T) {
	tests := map[string]struct {
		yes, person bool
		answer      string
		want        string
	}{
		"--yes":                 {yes: true},
		"a person says yes":     {person: true, answer: "y\n"},
		"a person says no":      {person: true, answer: "n\n", want: "nothing was changed"},
		"a person says nothing": {person: true, answer: "\n", want: "nothing was changed"},
		"the input ends":        {person: true, want: "nothing was changed"},
		"no person is there":    {answer: "y\n", want: "nothing is changed without --yes where no person can be asked"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := &program{Streams: Streams{In: strings.NewReader(tt.answer)}, parts: parts{asks: func(io.Reader) bool { return tt.person }}}
			got := ""
			if err := p.agreed(&cleanupFlags{yes: tt.yes}, io.Discard); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestWhatCleanupSays holds what a person reads before they are asked.
func TestWhatCleanupSays(t *testing.T) {
	var many []cleanup.Found
	for i := range 7 {
		many = append(many, cleanup.Found{Resource: catalog.Resource{Kind: "Foo"}, Namespace: "default", Name: fmt.Sprint("web-", i)})
	}
	found := cleanup.Findings{
		Objects: many, Children: []cleanup.Found{{Resource: catalog.Resource{Kind: "Namespace"}, Name: "team"}},
		Own: []cleanup.Found{{Resource: catalog.Resource{Kind: "Lease"}, Namespace: "system", Name: "foo-leader"}},
	}
	found.Within = []string{"team-a", "team-b"}
	var out strings.Builder
	tellFindings(&out, &cleanupFlags{children: deleteChildren}, &dsl.Operator{Name: "foo"}, found)
	want := `looked in namespaces team-a, team-b alone: the account may not list all kinds elsewhere
operator foo has left:
  7 objects with its marks: they stay, without these
    Foo default/web-0
    Foo default/web-1
    Foo default/web-2
    Foo default/web-3
    Foo default/web-4
    and 2 more
  1 children: they are deleted
    Namespace team
  1 objects of its own: they are deleted
    Lease system/foo-leader
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
