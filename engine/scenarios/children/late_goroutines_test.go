// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// slowly is an object that takes its time to be read. Meanwhile it is under way.
type slowly struct {
	object   any
	takes    time.Duration
	underWay *bool
}

// MarshalJSON implements [json.Marshaler].
func (s slowly) MarshalJSON() ([]byte, error) {
	*s.underWay = true
	time.Sleep(s.takes)
	*s.underWay = false
	return json.Marshal(s.object)
}

// TestAGoroutineThatAHandlerLeavesBehindMeetsNoLaterPass holds that goroutines that handlers leave behind do nothing to what is
// remembered of children while other reconciles run: what they begin later is refused, and what was under way when the
// handler returned has ended when the reconcile goes on. The race detector sees the rest.
func TestAGoroutineThatAHandlerLeavesBehindMeetsNoLaterPass(t *testing.T) {
	spec := dsl.ChildSpec{Handler: "x", Name: "settings", Ownership: dsl.Labelled}
	apply := func(c context.Context, r *dsl.Request, o any) error {
		_, err := r.Children.Apply(c, o, spec)
		return err
	}
	compare := func(c context.Context, r *dsl.Request, o any) error {
		_, _, err := r.Children.Stale(c, o, spec)
		return err
	}
	other := func(c context.Context, r *dsl.Request, o any) error {
		_, err := r.Client.Apply(c, o)
		return err
	}
	const long = 1500 * time.Millisecond
	tests := map[string]struct {
		does func(c context.Context, r *dsl.Request, o any) error
		// takes is how long it is under way, later how long after its handler it begins.
		takes, later time.Duration
	}{
		"a child is compared after the handler":                  {does: compare, later: time.Second},
		"a child is applied after the handler":                   {does: apply, later: time.Second},
		"a child is being compared when the handler returns":     {does: compare, takes: long},
		"a child is being applied when the handler returns":      {does: apply, takes: long},
		"another object is being written when a handler returns": {does: other, takes: long},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.ConfigMaps)
				underWay, runs := false, 0
				leaves := func(value string) dsl.Func {
					return func(c context.Context, r *dsl.Request) error {
						if underWay {
							j.Add("something is under way still")
						}
						if runs++; runs <= 6 {
							go func() {
								time.Sleep(test.later)
								err := test.does(context.WithoutCancel(c), r, slowly{scene.ConfigMapWithValue("default", "left"), test.takes, &underWay})
								if test.later > 0 && !errors.Is(err, context.Canceled) {
									j.Add("what was begun later was not refused")
								}
							}()
						}
						_, err := r.Children.Apply(c, scene.ConfigMapWithValue("default", value), dsl.ChildSpec{Handler: value, Name: "settings"})
						time.Sleep(100 * time.Millisecond)
						return errors.Join(dsl.Temporary(scene.ErrAgain, 700*time.Millisecond), err)
					}
				}
				foo.OnReconcile("x", leaves("x"))
				foo.OnReconcile("y", leaves("y"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(20 * time.Second)
				s.Called()
			}})
		})
	}
}
