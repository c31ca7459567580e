// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
)

// TestEchoes holds which events of an object start no reconcile after one that has written the object and left it at rest.
func TestEchoes(t *testing.T) {
	echo := func(p *post) { p.OnEvent(p.event(watch.Updated, "u", "2")) }
	tests := map[string]struct {
		// before comes before the reconcile writes, during before it has ended, and after when it has.
		before, during, after func(p *post)
		// restless: the reconcile says that there is something to do.
		restless bool
		// queued: the key is queued then. Its reconcile finds taken.
		queued bool
		taken  []string
	}{
		"the echo comes after the pass":                {after: echo},
		"the echo comes before the pass has ended":     {during: echo},
		"the echo comes twice":                         {during: echo, after: echo, queued: true, taken: []string{"MODIFIED"}},
		"there is something to do, and it comes after": {after: echo, restless: true, queued: true, taken: []string{"MODIFIED"}},
		"there is something to do, and it came before": {during: echo, restless: true, queued: true, taken: []string{"MODIFIED"}},
		"somebody wrote before": {during: func(p *post) {
			p.OnEvent(p.event(watch.Updated, "u", "1b"))
			echo(p)
		}, queued: true, taken: []string{"MODIFIED"}},
		"somebody wrote after": {during: func(p *post) {
			echo(p)
			p.OnEvent(p.event(watch.Updated, "u", "3"))
		}, queued: true, taken: []string{"MODIFIED"}},
		"somebody wrote after the echo": {after: func(p *post) {
			echo(p)
			p.OnEvent(p.event(watch.Updated, "u", "3"))
		}, queued: true, taken: []string{"MODIFIED"}},
		"the watch shows only what somebody wrote after": {after: func(p *post) {
			p.OnEvent(p.event(watch.Updated, "u", "3"))
		}, queued: true, taken: []string{"MODIFIED"}},
		"somebody wrote before the pass did": {before: func(p *post) {
			p.OnEvent(p.event(watch.Updated, "u", "1b"))
		}, during: echo, queued: true, taken: []string{"MODIFIED"}},
		"very many write": {during: func(p *post) {
			for range 3 * lateMost {
				echo(p)
			}
		}, queued: true, taken: []string{"MODIFIED"}},
		"another object has the name": {during: func(p *post) {
			echo(p)
			p.OnEvent(p.event(watch.Deleted, "u", "2"))
			p.OnEvent(p.event(watch.Added, "next", "3"))
		}, queued: true, taken: []string{"ADDED", "fresh", "gone u", "memory"}},
		"another object has the name, with the same version": {after: func(p *post) {
			p.OnEvent(p.event(watch.Updated, "next", "2"))
		}, queued: true, taken: []string{"MODIFIED"}},
		"another object has the name, and nobody saw the first one go": {after: func(p *post) {
			gone := p.event(watch.Deleted, "u", "1")
			gone.Unseen = true
			p.OnEvent(gone)
			p.OnEvent(p.event(watch.Added, "next", "2"))
			p.OnEvent(p.event(watch.Updated, "next", "2"))
		}, queued: true, taken: []string{"ADDED", "fresh", "gone u", "memory"}},
		"the object comes again, as to another watch": {after: func(p *post) {
			p.OnEvent(p.event(watch.Added, "u", "2"))
		}, queued: true, taken: []string{"ADDED", "fresh"}},
		"the object comes again before the pass has ended": {during: func(p *post) {
			p.OnEvent(p.event(watch.Added, "u", "2"))
			echo(p)
		}, queued: true, taken: []string{"ADDED", "fresh"}},
		"the object is deleted before the pass has ended": {during: func(p *post) {
			echo(p)
			p.OnEvent(p.event(watch.Deleted, "u", "2"))
		}, queued: true, taken: []string{"MODIFIED", "gone u"}},
		"the object is deleted": {after: func(p *post) {
			p.OnEvent(p.event(watch.Deleted, "u", "2"))
		}, queued: true, taken: []string{"gone u"}},
		"the versions have gone back": {after: func(p *post) {
			p.ForgetEchoes()
			echo(p)
		}, queued: true, taken: []string{"MODIFIED"}},
		"another write has the version": {after: func(p *post) {
			ev := p.event(watch.Updated, "u", "2")
			ev.Object = p.object("u", "2", "changed")
			p.OnEvent(ev)
		}, queued: true, taken: []string{"MODIFIED"}},
		"an index has changed by the write": {after: func(p *post) {
			p.OnIndexEvent(p.key, breaker.Version{UID: "u", Text: "2"})
			echo(p)
		}, queued: true, taken: []string{"MODIFIED"}},
		"an index has changed by the write, before the pass has ended": {during: func(p *post) {
			p.OnIndexEvent(p.key, breaker.Version{UID: "u", Text: "2"})
			echo(p)
		}, queued: true, taken: []string{"MODIFIED"}},
		"a child changes": {during: echo, after: func(p *post) {
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "5"), false)
		}, queued: true, taken: []string{"child"}},
		"somebody has the key looked at": {during: echo, after: func(p *post) { p.Enqueue(p.key) }, queued: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			key, turn := p.begun()
			for _, step := range []func(*post){tt.before, func(p *post) { p.BeginWrite(p.key) }, tt.during} {
				if step != nil {
					step(p)
				}
			}
			if !tt.restless {
				turn.LeaveIdle("u", []Echo{{"2", p.object("u", "2").Digest()}}, &Writes{})
			}
			turn.Handled()
			turn.Close()
			p.in.Done(key)
			if tt.after != nil {
				tt.after(p)
			}
			if queued := p.in.Len() > 0; queued != tt.queued {
				t.Errorf("the key is queued: %t, want %t", queued, tt.queued)
			}
			if room := p.keys[p.key].pending != nil; room != tt.queued && len(tt.taken) > 0 {
				t.Errorf("there is room for what comes up: %t", room)
			}
			want := tt.taken
			if len(want) == 0 || want[len(want)-1] != "memory" {
				want = append(want, "memory")
			}
			if diff := cmp.Diff(want, taken(p.Take(p.key))); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheEchoesOfTwoWritesComeAroundTheEndOfAPass holds that none of them starts a reconcile when one comes before the reconcile says what it has left,
// and the other one after.
func TestTheEchoesOfTwoWritesComeAroundTheEndOfAPass(t *testing.T) {
	p := newPost(t)
	key, turn := p.begun()
	p.BeginWrite(p.key)
	p.OnEvent(p.event(watch.Updated, "u", "2"))
	turn.LeaveIdle("u", []Echo{{"2", p.object("u", "2").Digest()}, {"3", p.object("u", "3").Digest()}}, &Writes{})
	p.OnEvent(p.event(watch.Updated, "u", "3"))
	turn.Handled()
	turn.Close()
	p.in.Done(key)
	if n := p.in.Len(); n > 0 {
		t.Errorf("%d keys are queued", n)
	}
}

// TestAwaitedWritesAreThereAgain holds that the next reconcile waits for the writes of one that left its object at rest, as far as their events
// have not come.
func TestAwaitedWritesAreThereAgain(t *testing.T) {
	own := Write{UID: "u", Version: "2", Own: true}
	child := Write{UID: "c", Version: "5"}
	tests := map[string]struct {
		come func(p *post)
		want []Write
	}{
		"no event has come":           {func(*post) {}, []Write{own, child}},
		"that of the object has":      {func(p *post) { p.OnEvent(p.event(watch.Updated, "u", "2")) }, []Write{child}},
		"that of the child has":       {func(p *post) { p.OnChildEvent(p.key, p.event(watch.Updated, "c", "5"), false) }, []Write{own}},
		"the versions have gone back": {(*post).ForgetEchoes, []Write{own, child}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			p.OnEvent(p.event(watch.Added, "u", "1"))
			turn := p.Take(p.key)
			turn.Memory = &remembered{"u"}
			p.wrote("c", "5")
			p.BeginWrite(p.key)
			turn.LeaveIdle("u", []Echo{{"2", p.object("u", "2").Digest()}}, &Writes{all: []Write{own, child}})
			turn.Handled()
			turn.Close()
			tt.come(p)
			got := p.Take(p.key).Awaited
			if diff := cmp.Diff(tt.want, got, cmp.Comparer(func(a, b Write) bool { return a == b })); diff != "" {
				t.Errorf("awaited (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEchoesOfTwoWrites holds that the events of both writes of a reconcile are echoes, also where a listing has shown one of them alone, and that
// others' events between and after them are none.
func TestEchoesOfTwoWrites(t *testing.T) {
	tests := map[string]struct {
		during, after []string
		queued        bool
	}{
		"both come":                                  {after: []string{"2", "3"}},
		"both come before the pass has ended":        {during: []string{"2", "3"}},
		"one comes before":                           {during: []string{"2"}, after: []string{"3"}},
		"only the second comes":                      {after: []string{"3"}},
		"only the second comes, before":              {during: []string{"3"}},
		"somebody wrote in between":                  {after: []string{"2", "2b", "3"}, queued: true},
		"somebody wrote in between, before":          {during: []string{"2", "2b", "3"}, queued: true},
		"only what somebody wrote after them comes":  {after: []string{"4"}, queued: true},
		"and after the first":                        {after: []string{"2", "4"}, queued: true},
		"the first is shown again after the second":  {after: []string{"2", "3", "2"}, queued: true},
		"the second is shown again, and then others": {after: []string{"3", "3"}, queued: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			p.writesTwice(tt.during...)
			p.come(tt.after...)
			if queued := p.in.Len() > 0; queued != tt.queued {
				t.Errorf("the key is queued: %t, want %t", queued, tt.queued)
			}
		})
	}
}

// TestAnEchoThatDoesNotComeIsLookedFor holds that an object is looked at again where the first of two writes is seen, and the second is not.
func TestAnEchoThatDoesNotComeIsLookedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		come   []string
		queued bool
	}{
		"both come":             {[]string{"2", "3"}, false},
		"the second alone does": {[]string{"3"}, false},
		"the first alone does":  {[]string{"2"}, true},
		"none does":             {nil, false}, // there was no event to drop
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPost(t)
				p.writesTwice()
				p.come(tt.come...)
				time.Sleep(Patience - time.Second)
				if p.in.Len() > 0 {
					t.Error("the key is queued before its time")
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if queued := p.in.Len() > 0; queued != tt.queued {
					t.Errorf("the key is queued: %t, want %t", queued, tt.queued)
				}
				p.End()
			})
		})
	}
}

// writesTwice has a reconcile write the object twice and leave it at rest. The events of these versions come before the reconcile has ended.
func (p *post) writesTwice(during ...string) {
	p.t.Helper()
	p.OnEvent(p.event(watch.Added, "u", "1"))
	key, _ := p.in.Get()
	turn := p.Take(key)
	turn.Memory = &remembered{"u"}
	p.BeginWrite(key)
	p.come(during...)
	turn.LeaveIdle("u", []Echo{{"2", p.object("u", "2").Digest()}, {"3", p.object("u", "3").Digest()}}, &Writes{})
	turn.Handled()
	turn.Close()
	p.in.Done(key)
}

// begun returns the first turn over an object that was there at the start.
func (p *post) begun() (Key, *Batch[remembered]) {
	ev := p.event(watch.Added, "u", "1")
	ev.Initial = true
	p.OnEvent(ev)
	key, _ := p.in.Get()
	turn := p.Take(key)
	turn.Memory = &remembered{"u"}
	return key, turn
}

// come has events of versions of the object come.
func (p *post) come(versions ...string) {
	p.t.Helper()
	for _, version := range versions {
		p.OnEvent(p.event(watch.Updated, "u", version))
	}
}

// TestEchoesOfChildren holds which events of children, that come while a reconcile has their owner, queue the owner again when the reconcile ends.
func TestEchoesOfChildren(t *testing.T) {
	made := func(p *post) { p.OnChildEvent(p.key, p.event(watch.Added, "c", "5"), false) }
	answered := func(p *post) { p.wrote("c", "5") }
	tests := map[string]struct {
		during []func(*post)
		// forgets: the reconcile has found that the owner is gone. Unhandled: it has broken off.
		forgets, unhandled bool
		queued             bool
	}{
		"the event comes before the answer":                                                      {during: []func(*post){made, answered}},
		"the event comes after the answer":                                                       {during: []func(*post){answered, made}},
		"the event comes, and no answer":                                                         {during: []func(*post){made}, queued: true},
		"somebody writes the child after the pass":                                               {during: []func(*post){made, answered, func(p *post) { p.OnChildEvent(p.key, p.event(watch.Updated, "c", "6"), false) }}, queued: true},
		"somebody writes the child before the answer comes":                                      {during: []func(*post){made, func(p *post) { p.OnChildEvent(p.key, p.event(watch.Updated, "c", "6"), false) }, answered}, queued: true},
		"somebody deletes the child before the answer comes":                                     {during: []func(*post){made, func(p *post) { p.OnChildEvent(p.key, p.event(watch.Deleted, "c", "6"), false) }, answered}, queued: true},
		"somebody writes the child before the pass does, and both events come before the answer": {during: []func(*post){func(p *post) { p.OnChildEvent(p.key, p.event(watch.Updated, "c", "4"), false) }, made, answered}, queued: true},
		"another child changes":                                                                  {during: []func(*post){made, answered, func(p *post) { p.OnChildEvent(p.key, p.event(watch.Updated, "d", "7"), false) }}, queued: true},
		"another write has the version, in a cluster that was set back": {during: []func(*post){func(p *post) {
			ev := p.event(watch.Updated, "c", "5")
			ev.Object = p.object("c", "5", "changed")
			p.OnChildEvent(p.key, ev, false)
		}, answered}, queued: true},
		"the pass breaks off":                          {during: []func(*post){made}, unhandled: true, queued: true},
		"the owner is gone, and a child of it changes": {during: []func(*post){made}, forgets: true, queued: true},
		"the owner is gone, and its child was written": {during: []func(*post){made, answered}, forgets: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			key, turn := p.begun()
			for _, step := range tt.during {
				step(p)
			}
			if p.in.Len() > 0 {
				t.Error("the key is queued while a pass has it")
			}
			if tt.forgets {
				turn.Forget()
			} else if !tt.unhandled {
				turn.Handled()
			}
			turn.Close()
			p.in.Done(key)
			if queued := p.in.Len() > 0; queued != tt.queued {
				t.Errorf("the key is queued: %t, want %t", queued, tt.queued)
			}
			if s := p.keys[p.key]; s != nil && !tt.queued && s.pending != nil && len(s.echoes) == 0 {
				t.Error("there is room for what comes up")
			}
		})
	}
}
