// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// says holds what the log says, a pattern for each line.
func (s *stage) says(log func() []string, want ...string) {
	s.t.Helper()
	got := log()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !regexp.MustCompile(want[i]).MatchString(got[i]) {
			s.t.Errorf("the log says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			return
		}
	}
}

// stir changes web's child as others do, which wakes its handlers.
func (s *stage) stir(replicas int64) {
	s.t.Helper()
	s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, replicas, "status", "replicas"); err != nil {
			s.t.Error(err)
		}
	})
	s.Settle()
}

// TestAFailureIsSaidWithItsEnd holds what the log says of a failure: a line for each text, and one when it is over.
func TestAFailureIsSaidWithItsEnd(t *testing.T) {
	const again = `"msg"="handler will be tried again" .*"name"="web" "handler"="child" .*`
	errOther := errors.New("something else")
	answers := func(errs ...error) func(*dsl.Resource, *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.Owns(deployments)
			foo.OnReconcile("child", func(ctx ctx, r *dsl.Request) error {
				if err := keepsChild(ctx, r); err != nil || len(errs) == 0 {
					return err
				}
				err := errs[0]
				errs = errs[1:]
				return err
			}, dsl.WithBackoff(10*time.Second, time.Minute))
		}
	}
	tests := map[string]struct {
		define func(*dsl.Resource, *journal)
		play   func(s *stage, log func() []string)
	}{
		"an attempt that fails as the one before has none, and the one that succeeds has": {
			answers(errAgain, errAgain, nil), func(s *stage, log func() []string) {
				s.says(log, "created Deployment", again+`"attempt"=1 "handwerk.warning"=true "error"="not yet" "retryAfter"="1\d`)
				s.Advance(time.Hour)
				s.says(log, `"msg"="handler works again" .*"name"="web" "handler"="child" .*"failed"=2 "lasted"="3\ds"`)
			},
		},
		"an attempt that fails otherwise than the one before has a line": {
			answers(errAgain, errOther, nil), func(s *stage, log func() []string) {
				s.Advance(time.Hour)
				s.says(log, "created Deployment", again+`"error"="not yet"`, again+`"attempt"=2 .*"error"="something else"`, `"msg"="handler works again" .*"failed"=2`)
			},
		},
		"one that children hurry, and that fails as before, has none": {
			answers(errAgain, errAgain, errAgain, errOther, errAgain, nil), func(s *stage, log func() []string) {
				log()
				s.stir(1)
				s.stir(2)
				s.says(log)
				s.stir(3)
				s.says(log, again+`"error"="something else" "retryAfter"="1\d`)
				s.Advance(time.Hour)
				s.says(log, again+`"attempt"=2`, `"msg"="handler works again" .*"failed"=5`)
			},
		},
		"one that failed for good works again": {
			answers(dsl.Permanent(errAgain)), func(s *stage, log func() []string) {
				s.says(log, "created Deployment", `"msg"="handler failed for good".*"error"="not yet"`)
				s.size(2)
				s.says(log, "updated Deployment", `"msg"="handler works again" .*"failed"=1`)
				s.size(3)
				s.says(log, "updated Deployment")
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{tt.define, func(s *stage) {
				log := overheard(s, "")
				log()
				s.Create(web)
				tt.play(s, log)
			}})
		})
	}
}

// TestAWriteThatFailsIsSaidWithItsEnd holds what the log says of passes whose write fails: nothing of a
// conflict that passes, and otherwise how it begins and ends.
func TestAWriteThatFailsIsSaidWithItsEnd(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "example.com", Resource: "foos"}, "web", errors.New("it was modified"))
	broken := apierrors.NewInternalError(fmt.Errorf("no space left"))
	const line = `"msg"="pass could not be finished" .*`
	tests := map[string]struct {
		faults []error
		want   []string
	}{
		"a conflict passes": {[]error{conflict}, nil},
		"conflicts without end": {slices.Repeat([]error{conflict}, 20), []string{
			`"level"=0 ` + line + `"name"="web" .*modified`, `"msg"="pass was finished again" .*"name"="web" "failed"=1`,
		}},
		"a server that is broken": {slices.Repeat([]error{broken}, 3), []string{
			`"level"=0 ` + line + "no space left",
			`"msg"="pass was finished again" .*"name"="web" "failed"=3 "lasted"="\ds"`,
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{
				func(foo *dsl.Resource, _ *journal) {
					foo.OnReconcile("status", func(_ ctx, r *dsl.Request) error {
						r.Patch.SetStatus("seen", r.Object.GetGeneration())
						return nil
					})
				},
				func(s *stage) {
					log := overheard(s, "")
					log()
					s.FailNext("patch", foos+"/status", tt.faults...)
					s.Create(web)
					s.Advance(time.Hour)
					s.says(log, tt.want...)
				},
			})
		})
	}
}

// TestAFilterIsSaidWithItsEnd holds that a filter which fails is a line, and one when it can be asked again.
func TestAFilterIsSaidWithItsEnd(t *testing.T) {
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) {
			foo.OnReconcile("picky", succeeds, dsl.When(func(r *dsl.Subject) (bool, error) {
				if size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size"); size < 3 {
					return false, errors.New("it is too small")
				}
				return true, nil
			}))
		},
		func(s *stage) {
			log := overheard(s, "")
			log()
			s.Create(web)
			s.size(2)
			s.says(log, `"msg"="filter failed; the handler does not see the object".*"error"="it is too small".*"handler"="picky"`)
			s.size(3)
			s.size(4)
			s.says(log, `"msg"="filter can be asked again".*"name"="web" "handler"="picky"`)
		},
	})
}
