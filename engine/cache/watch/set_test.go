// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

func wantCounts(t *testing.T, s *server, lists, watches, open int) {
	t.Helper()
	synctest.Wait()
	l, w, o := s.counts()
	if diff := cmp.Diff([]int{lists, watches, open}, []int{l, w, o}); diff != "" {
		t.Errorf("lists, watches, open streams (-want +got):\n%s", diff)
	}
}

func wantEvents(t *testing.T, j *journal, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, j.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func wantSame(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEqualSourcesShareAnInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		var first, second journal
		a := mustOpen(t, set, Source{GVR: foos}, &first)
		b := mustOpen(t, set, Source{GVR: foos, Form: cached.Form{Profile: dsl.CacheCompact}}, &second)
		wantCounts(t, s, 1, 1, 1)

		s.put("x", "1")
		wantEvents(t, &first, "added default/x 1")
		wantEvents(t, &second, "added default/x 1")

		a.Close()
		wantCounts(t, s, 1, 1, 1)
		s.put("x", "1")
		wantEvents(t, &first)
		wantEvents(t, &second, "updated default/x 1")

		b.Close()
		wantCounts(t, s, 1, 1, 0)
	})
}

func TestSourcesThatDifferAreWatchedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		defer set.Close()
		for _, src := range []Source{
			{GVR: foos},
			{GVR: foos, Namespace: "default"},
			{GVR: foos, LabelSelector: "a=b"},
			{GVR: foos, Form: cached.Form{Keep: "spec.a"}},
			{GVR: foos, Form: cached.Form{Profile: dsl.CacheMetadata}},
			{GVR: foos, Form: cached.Form{Profile: dsl.CacheMetadata, Keep: "spec.a"}}, // like the one before
		} {
			mustOpen(t, set, src, ignore)
		}
		wantCounts(t, s, 5, 5, 5)
	})
}

func TestAClosedSourceStartsAgainFromTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		s.put("x", "1")
		var j journal
		h := mustOpen(t, set, Source{GVR: foos}, &j)
		wantEvents(t, &j, "added default/x 1 initial")
		h.Close()
		s.drop("x")
		s.put("y", "2")
		wantEvents(t, &j)

		h = mustOpen(t, set, Source{GVR: foos}, &j)
		wantEvents(t, &j, "added default/y 2 initial")
		wantCounts(t, s, 2, 2, 1)
		h.Close()
		wantCounts(t, s, 2, 2, 0)
	})
}

func TestALaterOwnerGetsWhatIsThereAsInitial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		defer set.Close()
		s.put("x", "1")
		var first, second journal
		mustOpen(t, set, Source{GVR: foos}, &first)
		wantEvents(t, &first, "added default/x 1 initial")
		s.put("y", "2")
		wantEvents(t, &first, "added default/y 2")

		h := mustOpen(t, set, Source{GVR: foos}, &second)
		wantEvents(t, &second, "added default/x 1 initial", "added default/y 2 initial")
		if !h.Synced() {
			t.Error("a later owner that got everything is not synced")
		}
		s.drop("x")
		wantEvents(t, &first, "deleted default/x 1")
		wantEvents(t, &second, "deleted default/x 1")
	})
}

func TestCloseWaitsForTheCallback(t *testing.T) {
	tests := map[string]struct {
		shared bool
		end    func(*Set, *Handle)
	}{
		"of the last owner":    {false, func(_ *Set, h *Handle) { h.Close() }},
		"of one of two owners": {true, func(_ *Set, h *Handle) { h.Close() }},
		"when the set closes":  {false, func(s *Set, _ *Handle) { s.Close() }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				set := New(s.settings())
				defer set.Close()
				if tt.shared {
					mustOpen(t, set, Source{GVR: foos}, ignore)
				}
				running, release := false, make(chan struct{})
				calls := 0
				h := mustOpen(t, set, Source{GVR: foos}, handle(func(Event) {
					calls++
					running = true
					<-release
					running = false
				}))
				synctest.Wait()
				s.put("x", "1")
				s.put("y", "2")
				synctest.Wait()

				closed := false
				go func() {
					tt.end(set, h)
					closed = true
				}()
				synctest.Wait()
				if !running || closed {
					t.Fatalf("the callback runs: %t, Close has returned: %t; want true, false", running, closed)
				}
				close(release)
				synctest.Wait()
				s.put("z", "3")
				synctest.Wait()
				if running || !closed || calls != 1 {
					t.Errorf("the callback runs: %t (%d calls), Close has returned: %t; want false (1 call), true", running, calls, closed)
				}
				tt.end(set, h) // once more does nothing
			})
		})
	}
}

func TestSetCloseStopsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		s.put("x", "1")
		a := mustOpen(t, set, Source{GVR: foos}, ignore)
		b := mustOpen(t, set, Source{GVR: foos, Form: cached.Form{Profile: dsl.CacheLive}}, ignore)
		synctest.Wait()
		set.Close()
		wantCounts(t, s, 2, 2, 0)
		if _, err := set.Open(t.Context(), Source{GVR: foos}, ignore); err == nil {
			t.Error("a closed set opens sources")
		}
		a.Close()
		b.Close()
		set.Close()
		if _, found := a.Object(key("x")); !found {
			t.Error("a closed handle cannot be read")
		}
	})
}

func TestTheEndOfOpensContextStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		defer set.Close()
		var j journal
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := set.Open(ctx, Source{GVR: foos}, &j); err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		s.put("x", "1")
		wantEvents(t, &j, "added default/x 1")
	})
}

func TestFaultySourcesAreRefused(t *testing.T) {
	tests := map[string]struct {
		src  Source
		want string
	}{
		"a label selector": {Source{GVR: foos, LabelSelector: "a=b=c"}, "opening foos.v1.example.com: reading label selector: "},
		"a field selector": {Source{GVR: foos, FieldSelector: "a"}, "opening foos.v1.example.com: reading field selector: "},
		"a path to keep":   {Source{GVR: foos, Form: cached.Form{Keep: "spec..a"}}, "opening foos.v1.example.com: reading what to keep: "},
		"a profile":        {Source{GVR: foos, Namespace: "n", Form: cached.Form{Profile: "big"}}, `opening foos.v1.example.com in n: unknown cache profile "big"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			set := New(s.settings())
			defer set.Close()
			_, err := set.Open(t.Context(), tt.src, ignore)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %s…", err, tt.want)
			}
			if lists, _, _ := s.counts(); lists != 0 {
				t.Errorf("%d lists were sent, want none", lists)
			}
		})
	}
}

// The reflector sleeps up to a minute when a server that can stream lists is not there, and does
// not wake for the end of its context.
func TestCloseIsQuickWhileTheServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		s.set(refused, refused)
		settings := s.settings()
		settings.Dynamic = streaming{s.dynamic}
		set := New(settings)
		h := mustOpen(t, set, Source{GVR: foos}, ignore)
		advance(5 * time.Minute)
		start := time.Now()
		h.Close()
		if took := time.Since(start); took > 0 {
			t.Errorf("Close took %v, want no time at all", took)
		}
		if lists, watches, _ := s.counts(); lists < 5 || watches < 5 {
			t.Errorf("%d lists and %d watches in 5 minutes, want some retries", lists, watches)
		}
	})
}
