// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"testing"

	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
)

// silent is an owner that keeps nothing and says nothing.
type silent struct{}

func (silent) Keeps(*cached.Object) bool  { return false }
func (silent) Leaves(watch.Event) bool    { return false }
func (silent) LogWait(Wait)               {}
func (silent) Echoed(Key, *cached.Object) {}

// TestEachPhaseAndEvent walks every pair of phase and event, and holds what the inbox does in the phase that follows: whether a change of
// the object, or of a child, queues the key at once.
func TestEachPhaseAndEvent(t *testing.T) {
	key := Key{Namespace: "default", Name: "web"}
	reach := map[phase][]event{resting: nil, running: {onTake}, writing: {onTake, onWrite}}
	// queues says of each phase which changes queue the key.
	queues := map[phase]struct{ object, child bool }{resting: {true, true}, running: {true, false}, writing: {false, false}}
	next := map[phase]map[event]phase{
		resting: {onTake: running, onWrite: resting, onEnd: resting, onQueue: resting},
		running: {onTake: running, onWrite: writing, onEnd: resting, onQueue: running},
		writing: {onTake: running, onWrite: writing, onEnd: resting, onQueue: running},
	}
	for from := range phases {
		for ev := range events {
			want := queues[next[from][ev]]
			for what, wanted := range map[string]bool{"the object": want.object, "a child": want.child} {
				q := queue.New("", nil, func(k Key) string { return k.Namespace })
				b := New[int](silent{})
				b.Begin(q)
				b.stateLocked(key).uid = "u"
				var turn *Batch[int]
				for _, e := range append(append([]event{}, reach[from]...), ev) {
					switch {
					case e == onTake:
						turn = b.Take(key)
					case e == onWrite:
						b.BeginWrite(key)
					case e == onEnd && turn != nil:
						turn.Handled()
						turn.Close()
					case e == onQueue:
						b.OnIndexEvent(key, breaker.Version{UID: "u", Text: "9"})
						k, _ := q.Get()
						q.Done(k)
					}
				}
				if what == "a child" {
					b.OnChildEvent(key, watch.Event{Kind: watch.Updated, UID: "c", Object: cached.Named("default", "c")}, false)
				} else {
					b.OnEvent(watch.Event{Kind: watch.Updated, Key: key, UID: "u", Object: cached.Named("default", "web")})
				}
				if got := len(q.Stats().Waiting) > 0; got != wanted {
					t.Errorf("in phase %d after event %d, a change of %s queues the key: %v, want %v", from, ev, what, got, wanted)
				}
			}
		}
	}
}
