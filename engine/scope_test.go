// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/watch"
)

// TestANamespaceThatIsMadeAgain holds that the answer about a namespace says nothing of one that came
// after it was asked for.
func TestANamespaceThatIsMadeAgain(t *testing.T) {
	name := cache.ObjectName{Name: "team-a"}
	came := watch.Event{Kind: watch.Added, Key: name}
	vanished := watch.Event{Kind: watch.Deleted, Key: name, Unseen: true}
	tests := map[string]struct {
		meanwhile []watch.Event
		want      []string
		again     bool
	}{
		"one that is gone leaves the scope":                         {nil, nil, false},
		"one that comes while the old one is asked for stays":       {[]watch.Event{came}, []string{"team-a"}, false},
		"one that comes and vanishes meanwhile is asked for, again": {[]watch.Event{came, vanished}, []string{"team-a"}, true},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			s := newScope([]string{"team-*"})
			s.feed, s.changed = &feed{log: logr.Discard(), wake: make(chan struct{}, 1)}, func() {}
			s.ask = func(context.Context, string) (bool, error) {
				for _, ev := range tt.meanwhile {
					s.seen(ev)
				}
				return true, nil
			}
			s.seen(came)
			s.sync()
			s.seen(vanished)
			again := s.confirm(t.Context())
			got, _ := s.names(true)
			if diff := cmp.Diff(tt.want, got); diff != "" || again != tt.again {
				t.Errorf("to ask again is %v, want %v; the scope (-want +got):\n%s", again, tt.again, diff)
			}
		})
	}
}
