// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"runtime/debug"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// Stage is where a scenario plays. Its operator is named op.
type Stage struct {
	*kit.Stage
	T *testing.T
}

// The race detector makes collections dear, and clusters are small: tests take a tenth less time with fewer of them.
var _ = debug.SetGCPercent(400)

// NewStage returns a stage for an operator that has no resources yet.
func NewStage(t *testing.T, c *kit.Cluster) *Stage {
	return &Stage{Stage: kit.NewStage(c, dsl.New("op")), T: t}
}

// Begin starts the operator, creates web, and forgets what was called and written for it.
func (s *Stage) Begin() {
	s.T.Helper()
	s.Launch()
	s.Create(Web)
	s.Forget()
}

// Web returns the Foo, nil when it is gone.
func (s *Stage) Web() *unstructured.Unstructured {
	s.T.Helper()
	return s.Get(Foos, "default", "web")
}

// Set sets a field of web.
func (s *Stage) Set(value any, path ...string) {
	s.T.Helper()
	s.Update(Foos, "default", "web", func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			s.T.Error(err)
		}
	})
}

// Resize sets web's spec.size, the change that most tests make.
func (s *Stage) Resize(n int64) {
	s.T.Helper()
	s.Set(n, "spec", "size")
}

// LabelTier sets web's label tier and removes all others; an empty value removes it, too. Labels do not change the generation.
func (s *Stage) LabelTier(value string) {
	s.T.Helper()
	s.Update(Foos, "default", "web", func(o *unstructured.Unstructured) {
		if value == "" {
			o.SetLabels(nil)
			return
		}
		o.SetLabels(map[string]string{"tier": value})
	})
}

// Remove deletes web.
func (s *Stage) Remove() {
	s.T.Helper()
	s.Delete(Foos, "default", "web")
}

// Stop stops the operator.
func Stop(s *Stage) {
	s.T.Helper()
	if err := s.Process.Stop(); err != nil {
		s.T.Error(err)
	}
}

// Upgrade stops the operator and starts its next version. What happens in between is away, which may be nil.
func (s *Stage) Upgrade(next func(foo *dsl.Resource, j *kit.Journal), away func()) {
	s.T.Helper()
	s.Forget()
	Stop(s)
	if away != nil {
		away()
	}
	s.Operator = dsl.New("op")
	s.Operator.Resource(Foos, func(foo *dsl.Resource) { next(foo, &s.Journal) })
	s.Launch()
}
