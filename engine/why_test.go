// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// whys collects what reconciles say of handlers for which something was due.
type whys struct {
	mu  sync.Mutex
	all []string
}

var looked = regexp.MustCompile(`"msg"="handler was looked at" .*"handler"="(\w+)" "cause"="(\w+)" "why"="([^"\\]*(?:\\.[^"\\]*)*)"`)

func (r *whys) add(_, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := looked.FindStringSubmatch(line); m != nil {
		r.all = append(r.all, m[1]+" "+m[2]+" "+strings.ReplaceAll(m[3], `\"`, `"`))
	}
	if strings.Contains(line, "no handler runs now") {
		_, why, _ := strings.Cut(line, `"why"=`)
		r.all = append(r.all, "- "+strings.Trim(why, `"`))
	}
}

// take returns the reasons since it was called before.
func (r *whys) take() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, r.all = r.all, nil
	return out
}

// TestWhyAHandlerRunsOrNot holds the reason that a reconcile gives for each handler for which something is due.
func TestWhyAHandlerRunsOrNot(t *testing.T) {
	type operator = func(foo *dsl.Resource, j *kit.Journal)
	fine := func(_ context.Context, _ *dsl.Request) error { return nil }
	fails := func(_ context.Context, _ *dsl.Request) error { return dsl.Temporary(scene.ErrAgain, time.Hour) }
	tests := map[string]struct {
		operator operator
		then     func(s *scene.Stage)
		want     []string
	}{
		"a handler that is due has run": {func(foo *dsl.Resource, _ *kit.Journal) { foo.OnReconcile("app", fine) }, nil, []string{"app create Ran"}},
		"a label does not match, and the reason has its value": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", fine, dsl.Label("tier", "gold"))
		}, nil, []string{`app create NotMatched: label tier is not set`}},
		"a when is false": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", fine, dsl.When(func(*dsl.Subject) (bool, error) { return false, nil }))
		}, nil, []string{"app create WhenFalse"}},
		"a when fails, and the reason has its error": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", fine, dsl.When(func(*dsl.Subject) (bool, error) { return false, dsl.Permanent(errors.New("no size")) }))
		}, nil, []string{"app create WhenFails: no size"}},
		"a handler comes after one that has failed": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("first", fails)
			foo.OnReconcile("second", fine, dsl.After("first"))
		}, nil, []string{"first create Ran", "second create Blocked: first"}},
		"a handler that has failed is tried again later": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", fails, dsl.Field("spec.size"))
			foo.OnReconcile("color", fine, dsl.Field("spec.color"))
		}, func(s *scene.Stage) { s.Set("blue", "spec", "color") }, []string{"app create BackOff: ", "color update Ran"}},
		"a schedule of the resource that is due has run": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Schedule(dsl.Timing{Every: time.Minute}, "tidy", fine)
		}, func(s *scene.Stage) { s.Advance(time.Minute) }, []string{"tidy timer Ran"}},
		"a schedule of the resource that has failed is tried again later": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Schedule(dsl.Timing{Every: time.Minute}, "tidy", fails)
		}, func(s *scene.Stage) { s.Advance(2 * time.Minute) }, []string{"tidy timer Ran", "tidy timer BackOff: "}},
		"the object is paused": {func(foo *dsl.Resource, _ *kit.Journal) { foo.OnReconcile("app", fine) }, func(s *scene.Stage) {
			s.Set("looking", "metadata", "annotations", "op.handwerk.dev/paused")
		}, []string{"- Paused: looking"}},
		"the lifecycle of the resource chooses another one": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Lifecycle = dsl.OneByOne
			foo.OnReconcile("first", fine)
			foo.OnReconcile("second", fine)
		}, nil, []string{"first create Ran", "second create NotChosen"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: tt.operator, Play: func(s *scene.Stage) {
				s.Launch()
				var r whys
				engine.WatchReconciles(s.Process.Engine(), funcr.New(r.add, funcr.Options{Verbosity: 2}))
				s.Create(scene.Web)
				s.Settle()
				if tt.then != nil {
					r.take()
					tt.then(s)
					s.Settle()
				}
				got := r.take()
				got = got[:min(len(got), len(tt.want))]
				for i := range got {
					if strings.HasSuffix(tt.want[i], ": ") { // followed by a time
						got[i] = got[i][:min(len(got[i]), len(tt.want[i]))]
					}
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("reasons (-want +got):\n%s", diff)
				}
			}})
		})
	}
}
