// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
)

const mega = 1 << 20

// desk is a budget of 32 MiB, and who was woken.
type desk struct {
	*Budget
	woken []string
}

func newDesk() *desk { return &desk{Budget: NewBudget(8 * 32 * mega)} }

func (d *desk) take(namespace, name string, bytes int) *Share {
	return d.Take(Who{"foos", namespace, name}, bytes, d)
}

func (d *desk) Enqueue(key inbox.Key) { d.woken = append(d.woken, key.Name) }

func TestNamespacesTakeTurns(t *testing.T) {
	d := newDesk()
	first, second := d.take("a", "a1", 16*mega), d.take("a", "a2", 16*mega)
	if first == nil || second == nil {
		t.Fatal("there is room, and they wait")
	}
	for _, name := range []string{"a3", "a4", "a3"} {
		if d.take("a", name, 16*mega) != nil {
			t.Fatalf("%s does not wait", name)
		}
	}
	if d.take("b", "b1", 16*mega) != nil {
		t.Fatal("b1 does not wait")
	}
	small := d.take("b", "small", mega/4)
	if small == nil {
		t.Fatal("a small one waits")
	}
	small.Return()
	first.Return()
	if want := []string{"b1"}; !slices.Equal(d.woken, want) {
		t.Fatalf("woken are %v, want %v: the namespace that holds least", d.woken, want)
	}
	second.Return()
	if want := []string{"b1", "a3"}; !slices.Equal(d.woken, want) {
		t.Fatalf("woken are %v, want %v", d.woken, want)
	}
	if d.take("c", "c1", 16*mega) != nil {
		t.Error("somebody takes what is kept for those that were woken")
	}
	b1 := d.take("b", "b1", 16*mega)
	if b1 == nil || d.take("a", "a3", 16*mega) == nil {
		t.Fatal("who was woken waits")
	}
	b1.Return()
	if want := []string{"b1", "a3", "c1"}; !slices.Equal(d.woken, want) {
		t.Errorf("woken are %v, want %v", d.woken, want)
	}
}

func TestWhoAsksForMoreThanThereIsGetsAll(t *testing.T) {
	d := newDesk()
	some := d.take("a", "a1", 8*mega)
	if d.take("b", "b1", math.MaxInt/2) != nil {
		t.Fatal("it does not wait")
	}
	if d.take("c", "c1", 8*mega) != nil {
		t.Error("one that came later goes first, and so would others: the large one never would")
	}
	some.Return()
	if want := []string{"b1"}; !slices.Equal(d.woken, want) || d.take("b", "b1", math.MaxInt/2) == nil {
		t.Errorf("woken are %v, want %v", d.woken, want)
	}
}

func TestOneThatGrowsGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		one, two := d.take("a", "a1", 16*mega), d.take("b", "b1", 16*mega)
		if err := one.Grow(t.Context(), 64*mega); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := one.Grow(ended, mega); !errors.Is(err, context.Canceled) {
			t.Errorf("it grows once more, and has something to give back: %v", err)
		}
		one.shrink(32 * mega)
		if err := one.Grow(ended, mega); err != nil {
			t.Errorf("it does not grow, and has nothing to give back: %v", err)
		}
		one.shrink(mega)
		if err := two.Grow(ended, mega); !errors.Is(err, context.Canceled) {
			t.Errorf("the other one grows, too: %v", err)
		}
		grown := make(chan error, 1)
		go func() { grown <- two.Grow(t.Context(), mega) }()
		synctest.Wait()
		select {
		case err := <-grown:
			t.Fatalf("the other one does not wait: %v", err)
		default:
		}
		if got := one.Grown(); got != 64*mega {
			t.Errorf("it has grown by %d", got)
		}
		one.Return()
		if err := <-grown; err != nil {
			t.Error(err)
		}
		two.Return()
		two.Return()
		if d.used != 0 || len(d.of) != 0 || d.senior != nil {
			t.Errorf("when all is returned, %d bytes are left, %v", d.used, d.of)
		}
	})
}

func TestWhatATermLeavesIsFree(t *testing.T) {
	d := newDesk()
	all := d.take("a", "a1", 32*mega)
	if d.take("b", "b1", 32*mega) != nil || d.take("b", "b2", 32*mega) != nil {
		t.Fatal("they do not wait")
	}
	all.Return()
	d.Drop("foos")
	if d.used != 0 || len(d.waits) != 0 || len(d.ready) != 0 {
		t.Errorf("%d bytes are held, and %d wait", d.used, len(d.waits))
	}
	if none := (*Share)(nil); none.Grow(t.Context(), math.MaxInt) != nil || none.Grown() != 0 {
		t.Error("without a share there is a bound")
	}
}

func TestWhoLeavesKeepsNothing(t *testing.T) {
	d := newDesk()
	all := d.take("a", "a1", 32*mega)
	for _, name := range []string{"b1", "b2", "b3"} {
		if d.take("b", name, 32*mega) != nil {
			t.Fatalf("%s does not wait", name)
		}
	}
	d.Leave(Who{"foos", "b", "b2"})
	all.Return()
	d.Leave(Who{"foos", "b", "b1"}) // its share is ready
	if want := []string{"b1", "b3"}; !slices.Equal(d.woken, want) {
		t.Errorf("woken are %v, want %v", d.woken, want)
	}
}
