// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAChangeOfAnObjectAmongItsRelatedOnesIsSeen holds that handlers which read related objects run when the object itself, which
// is one of them, has changed: also when it is the only one, and when it comes to be one; and that they rest.
func TestAChangeOfAnObjectAmongItsRelatedOnesIsSeen(t *testing.T) {
	const sum = `{id: a, set: {status: {seen: "${related.all.map(o, o.spec.size).sum()}"}}}`
	for name, c := range map[string]struct {
		relation, handlers string
		change             func(s *scene.Stage)
		want               any
	}{
		"a field": {`{name: all, resource: foos.v1.example.com}`, sum, func(s *scene.Stage) { s.Resize(5) }, int64(5)},
		"a label by which it is selected": {
			`{name: all, resource: foos.v1.example.com, selector: {matchLabels: {tier: gold}}}`,
			`{id: a, set: {status: {seen: "${related.all.size()}"}}}`, func(s *scene.Stage) { s.Set("gold", "metadata", "labels", "tier") }, int64(1),
		},
		"its status, by another handler": {
			`{name: all, resource: foos.v1.example.com}`,
			`{id: a, set: {status: {seen: "${related.all.map(o, o.?status.?size.orValue(0)).sum()}"}}}, {id: b, set: {status: {size: "${self.spec.size}"}}}`,
			func(s *scene.Stage) { s.Resize(5) }, int64(5),
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: foos.v1.example.com, related: [`+c.relation+`], handlers: [`+c.handlers+`, {id: bye, causes: [delete], log: {message: bye}}]}`, func(s *scene.Stage) {
				s.Begin()
				s.Settle()
				c.change(s)
				s.Settle()
				if got := scene.ValueAt(s.Web(), "status.seen"); got != c.want {
					t.Errorf("it is seen as %v, want %v", got, c.want)
				}
				if n := len(s.Of("a", "web")); n > 4 {
					t.Errorf("the one that reads it was called %d times", n)
				}
				s.Forget()
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
			})
		})
	}
}
