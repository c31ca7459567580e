// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
)

// Stage is a cluster with one operator and the journal of its handlers' calls, which is what most tests of an
// operator need.
//
//	s := kit.NewStage(c, dsl.New("shop"))
//	s.Operator.Resource("orders.v1.example.com", func(order *dsl.Resource) {
//		order.OnField("spec.total", "invoice", s.Note("invoice", shop.Invoice))
//	})
//	s.Launch()
//	s.Create(order)
//	s.Forget()
//	…
//	s.Called("invoice update")
//	s.Wrote("patch orders default/one")
type Stage struct {
	*Cluster
	Journal
	// Operator is the operator under test, and Process its process after Launch.
	Operator *dsl.Operator
	Process  *Process
	// Adjust adjust the settings with which Launch starts it. Optional.
	Adjust []func(*engine.Settings)
}

// NewStage returns a stage for the operator, which need not be complete yet.
func NewStage(c *Cluster, op *dsl.Operator) *Stage { return &Stage{Cluster: c, Operator: op} }

// Launch starts the operator. See [Cluster.Start].
func (s *Stage) Launch() {
	s.t.Helper()
	s.Process = s.Start(s.Operator, s.Adjust...)
}

// Forget settles, and drops the calls and writes so far.
func (s *Stage) Forget() {
	s.Settle()
	s.Take()
	s.Writes()
}

// Called settles, and fails the test unless the handlers' calls since the last Called or Forget are exactly these,
// in this order, in the form of [Call.String].
func (s *Stage) Called(want ...string) {
	s.t.Helper()
	s.Settle()
	compare(s.t, "calls", want, s.Take())
}

// CalledInAnyOrder is Called for calls for several objects, whose order is not defined.
func (s *Stage) CalledInAnyOrder(want ...string) {
	s.t.Helper()
	s.Settle()
	compare(s.t, "calls, sorted", slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(s.Take())))
}

// Wrote settles, and fails the test unless the operators' write requests since the last Wrote, Forget or
// [Cluster.Writes] are exactly these, in this order, in the form of [Write.String].
func (s *Stage) Wrote(want ...string) {
	s.t.Helper()
	s.Settle()
	compare(s.t, "writes", want, s.wrote())
}

// WroteInAnyOrder is Wrote for writes that do not wait for each other.
func (s *Stage) WroteInAnyOrder(want ...string) {
	s.t.Helper()
	s.Settle()
	compare(s.t, "writes, sorted", slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(s.wrote())))
}

// wrote returns the writes since the last call as texts.
func (s *Stage) wrote() (out []string) {
	for _, w := range s.Writes() {
		out = append(out, w.String())
	}
	return out
}

func compare(t testing.TB, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
