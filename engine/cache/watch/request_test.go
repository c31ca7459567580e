// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

type listOptions = metav1.ListOptions

var (
	options  = listOptions{}
	foosKind = foos.GroupVersion().WithKind("Foo").GroupKind()
)

// refuseStreams answers plain watches and leaves those for a streamed list to fail.
func refuseStreams(s *server) clienttesting.WatchReactionFunc {
	return func(a clienttesting.Action) (bool, apiwatch.Interface, error) {
		if a.(clienttesting.WatchActionImpl).ListOptions.SendInitialEvents != nil {
			return false, nil, nil
		}
		return true, apiwatch.NewRaceFreeFake(), nil
	}
}

func TestSelectorsArePushedToTheServer(t *testing.T) {
	for _, profile := range []dsl.CacheProfile{dsl.CacheCompact, dsl.CacheMetadata} {
		t.Run(string(profile), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				set := New(s.settings())
				defer set.Close()
				mustOpen(t, set, Source{
					GVR: foos, Namespace: "team-a", Form: cached.Form{Profile: profile},
					LabelSelector: "tier=gold", FieldSelector: "metadata.name=x",
				}, ignore)
				wantCounts(t, s, 1, 1, 1)
				for _, opts := range []listOptions{s.lists[0], s.watches[0]} {
					wantSame(t, []string{"tier=gold", "metadata.name=x"}, []string{opts.LabelSelector, opts.FieldSelector})
				}
				actions := append(s.dynamic.Actions(), s.metadata.Actions()...)
				for _, a := range actions {
					if a.GetNamespace() != "team-a" {
						t.Errorf("%s in namespace %q, want team-a", a.GetVerb(), a.GetNamespace())
					}
				}
			})
		})
	}
}

// Version 0 would be answered from a server's cache, however old it is.
func TestTheFirstListIsAsNewAsCanBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		defer set.Close()
		mustOpen(t, set, Source{GVR: foos, Namespace: "default"}, ignore) // the fake hides versions else
		synctest.Wait()
		s.gap(func() { s.put("a", "1") })
		wantCounts(t, s, 2, 2, 1)
		wantSame(t, []string{"", "100"}, []string{s.lists[0].ResourceVersion, s.lists[1].ResourceVersion})
	})
}

func TestListsAreStreamedUnlessTheClientIsAFake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		settings := s.settings()
		settings.Dynamic = streaming{s.dynamic}
		set := New(settings)
		defer set.Close()
		var j journal
		h := mustOpen(t, set, Source{GVR: foos}, &j)
		wantEvents(t, &j, "added default/a 1 initial")
		wantCounts(t, s, 0, 1, 1)
		if got := h.ResourceVersion(); got != "101" || !h.Synced() {
			t.Errorf("synced: %t at version %q, want true at 101", h.Synced(), got)
		}
		mustOpen(t, set, Source{GVR: foos, Form: cached.Form{Profile: dsl.CacheMetadata}}, ignore)
		wantCounts(t, s, 1, 2, 2)
	})
}

func TestAListThatMakesNoSenseIsAFault(t *testing.T) {
	h := newHealth(Source{GVR: foos}, (&log{}).logger(), nil)
	h.missed(errors.New("unable to understand list result"))
	if h.now().Fault == nil {
		t.Error("there is no fault")
	}
	h.listed(nil)
	if f := h.now().Fault; f != nil {
		t.Errorf("after a list there is the fault %v", f)
	}
}

func TestAnUnreadStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &observer{health: newHealth(Source{GVR: foos}, (&log{}).logger(), nil)}
		inner := apiwatch.NewRaceFreeFake()
		w := o.forward(t.Context(), inner, false, 0)
		inner.Add(newServer().put("a", "1"))
		synctest.Wait()
		w.Stop()
		w.Stop()
		start := time.Now()
		o.streams.Wait()
		if took := time.Since(start); took > 0 {
			t.Errorf("the stream took %v to end", took)
		}
	})
}
