// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// changeChild changes web's child as others do, which wakes its handlers.
func changeChild(s *scene.Stage, replicas int64) {
	s.T.Helper()
	s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, replicas, "status", "replicas"); err != nil {
			s.T.Error(err)
		}
	})
	s.Settle()
}

// TestAFailureIsLoggedWithItsEnd holds what the log says of a failure: a line for each text, and one when it is over.
func TestAFailureIsLoggedWithItsEnd(t *testing.T) {
	const again = `"msg"="handler will be tried again" .*"name"="web" "handler"="child" .*`
	errOther := errors.New("something else")
	answers := func(errs ...error) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", func(ctx context.Context, r *dsl.Request) error {
				if err := scene.KeepsDeployment(ctx, r); err != nil || len(errs) == 0 {
					return err
				}
				err := errs[0]
				errs = errs[1:]
				return err
			}, dsl.WithBackoff(10*time.Second, time.Minute))
		}
	}
	tests := map[string]struct {
		define func(*dsl.Resource, *kit.Journal)
		play   func(s *scene.Stage, log func() []string)
	}{
		"an attempt that fails as the one before has none, and the one that succeeds has": {
			answers(scene.ErrAgain, scene.ErrAgain, nil), func(s *scene.Stage, log func() []string) {
				s.WantLines(log, "created Deployment", again+`"attempt"=1 "handwerk.warning"=true "error"="not yet" "retryAfter"="1\d`)
				s.Advance(time.Hour)
				s.WantLines(log, `"msg"="handler works again" .*"name"="web" "handler"="child" .*"failed"=2 "lasted"="3\ds"`)
			},
		},
		"an attempt that fails otherwise than the one before has a line": {
			answers(scene.ErrAgain, errOther, nil), func(s *scene.Stage, log func() []string) {
				s.Advance(time.Hour)
				s.WantLines(log, "created Deployment", again+`"error"="not yet"`, again+`"attempt"=2 .*"error"="something else"`, `"msg"="handler works again" .*"failed"=2`)
			},
		},
		"one that children hurry, and that fails as before, has none": {
			answers(scene.ErrAgain, scene.ErrAgain, scene.ErrAgain, errOther, scene.ErrAgain, nil), func(s *scene.Stage, log func() []string) {
				log()
				changeChild(s, 1)
				changeChild(s, 2)
				s.WantLines(log)
				changeChild(s, 3)
				s.WantLines(log, again+`"error"="something else" "retryAfter"="1\d`)
				s.Advance(time.Hour)
				s.WantLines(log, again+`"attempt"=2`, `"msg"="handler works again" .*"failed"=5`)
			},
		},
		"one that failed for good works again": {
			answers(dsl.Permanent(scene.ErrAgain)), func(s *scene.Stage, log func() []string) {
				s.WantLines(log, "created Deployment", `"msg"="handler failed for good".*"error"="not yet"`)
				s.Resize(2)
				s.WantLines(log, "updated Deployment", `"msg"="handler works again" .*"failed"=1`)
				s.Resize(3)
				s.WantLines(log, "updated Deployment")
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: tt.define, Play: func(s *scene.Stage) {
				log := scene.LaunchWithLog(s, "")
				log()
				s.Create(scene.Web)
				tt.play(s, log)
			}})
		})
	}
}

// TestAWriteThatFailsIsLoggedWithItsEnd holds what the log says of reconciles whose write fails: nothing of a
// conflict that passes, and otherwise how it begins and ends.
func TestAWriteThatFailsIsLoggedWithItsEnd(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "example.com", Resource: "foos"}, "web", errors.New("it was modified"))
	broken := apierrors.NewInternalError(fmt.Errorf("no space left"))
	const line = `"msg"="reconcile could not be finished" .*`
	tests := map[string]struct {
		faults []error
		want   []string
	}{
		"a conflict passes": {[]error{conflict}, nil},
		"conflicts of an object that nobody has changed are a refusal": {[]error{conflict, conflict}, []string{
			`"msg"="handler will be tried again" .*"name"="web" .*modified`, `"msg"="handler works again" .*"name"="web" .*"failed"=1`,
		}},
		"a server that is broken": {slices.Repeat([]error{broken}, 3), []string{
			`"level"=0 ` + line + "no space left",
			`"msg"="reconcile finished again" .*"name"="web" "failed"=3 "lasted"="\ds"`,
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, _ *kit.Journal) {
					foo.OnReconcile("status", func(_ context.Context, r *dsl.Request) error {
						r.Patch.SetStatus("seen", r.Object.GetGeneration())
						return nil
					})
				},
				Play: func(s *scene.Stage) {
					log := scene.LaunchWithLog(s, "")
					log()
					s.FailNext("patch", scene.Foos+"/status", tt.faults...)
					s.Create(scene.Web)
					s.Advance(time.Hour)
					s.WantLines(log, tt.want...)
				},
			})
		})
	}
}

// TestAFilterThatFailsIsLoggedWithItsEnd holds that a filter which fails is a line, and one when it can be asked again.
func TestAFilterThatFailsIsLoggedWithItsEnd(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("picky", scene.Succeeds, dsl.When(func(r *dsl.Subject) (bool, error) {
				if size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size"); size < 3 {
					return false, errors.New("it is too small")
				}
				return true, nil
			}))
		},
		Play: func(s *scene.Stage) {
			log := scene.LaunchWithLog(s, "")
			log()
			s.Create(scene.Web)
			s.Resize(2)
			s.WantLines(log, `"msg"="filter failed; the handler does not see the object".*"error"="it is too small".*"handler"="picky"`)
			s.Resize(3)
			s.Resize(4)
			s.WantLines(log, `"msg"="filter can be asked again".*"name"="web" "handler"="picky"`)
		},
	})
}
