// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestLabelledChildrenInHardCases holds that a labelled child goes with its owner, and nobody else's object does, when several
// things happen at once.
func TestLabelledChildrenInHardCases(t *testing.T) {
	// lost makes the child with a request whose answer is lost, while the watch of its kind brings nothing.
	lost := func(s *stage) {
		s.elsewhere()
		s.Launch()
		s.LoseNext("patch", configMaps)
		s.HoldWatches(configMaps)
		s.Create(web)
		s.Settle()
		s.value("elsewhere", "x")
		s.Forget()
	}
	begins := func(s *stage) {
		s.elsewhere()
		s.begin()
		s.value("elsewhere", "x")
	}
	other := func(foo *dsl.Resource, j *journal) { foo.OnReconcile("other", succeeds) }
	// next ends the process and starts another operator.
	next := func(s *stage, op *dsl.Operator, declare func(foo *dsl.Resource, j *journal)) {
		s.Process.Kill()
		s.Operator = op
		op.Resource(foos, func(foo *dsl.Resource) { declare(foo, &s.Journal) })
		s.Launch()
	}
	renamed := func() *dsl.Operator {
		op := dsl.New("new")
		op.Was = []string{"op"}
		return op
	}
	edge := func(spec dsl.ChildSpec) func(foo *dsl.Resource, j *journal) {
		spec.Handler, spec.Name, spec.Ownership = "keep", "settings", dsl.Labelled
		return func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.On(both(), "keep", func(ctx ctx, r *dsl.Request) error {
				_, err := r.Children.Apply(ctx, settings("elsewhere", "x"), spec)
				return err
			}, dsl.Field("spec.size"))
		}
	}
	scenarios(t, map[string]scenario{
		"its creation got no answer, and the next version does not know its handler": {keepsOnChange, func(s *stage) {
			lost(s)
			next(s, dsl.New("op"), other)
			s.leavesNothing()
		}},
		"its creation is answered after the process has ended, and the next version does not know its handler": {keepsOnChange, func(s *stage) {
			s.elsewhere()
			s.Launch()
			s.DelayNext("patch", configMaps, time.Hour)
			s.Create(web)
			s.Settle()
			next(s, dsl.New("op"), other)
			s.leavesNothing()
		}},
		"its creation got no answer, and the operator is renamed while the owner is deleted": {keepsOnChange, func(s *stage) {
			lost(s)
			s.remove()
			next(s, renamed(), keepsOnChange)
			s.Advance(5 * time.Minute)
			s.ReleaseWatches(configMaps)
			s.Advance(5 * time.Minute)
			s.leftNothing()
		}},
		"somebody has made another object of its name that no watch has shown": {keepsOnChange, func(s *stage) {
			begins(s)
			s.HoldWatches(configMaps)
			s.Delete(configMaps, "elsewhere", "web")
			s.Create(settings("elsewhere", "theirs"))
			s.remove()
			s.Advance(time.Minute)
			s.ReleaseWatches(configMaps)
			s.Advance(3 * time.Minute)
			s.gone()
			s.value("elsewhere", "theirs")
		}},
		"somebody has made another object of its name while no process ran, and the next version does not watch its kind": {keepsOnChange, func(s *stage) {
			begins(s)
			s.Process.Kill()
			s.Delete(configMaps, "elsewhere", "web")
			s.Create(settings("elsewhere", "theirs"))
			next(s, dsl.New("op"), other)
			s.remove()
			s.Advance(3 * time.Minute)
			s.gone()
			s.value("elsewhere", "theirs")
		}},
		"one that is to be left behind is deleted while its watch is held": {edge(dsl.ChildSpec{OnDelete: dsl.OrphanChild}), func(s *stage) {
			begins(s)
			s.HoldWatches(configMaps)
			s.Delete(configMaps, "elsewhere", "web")
			s.remove()
			s.Advance(3 * time.Minute)
			s.ReleaseWatches(configMaps)
			s.Advance(3 * time.Minute)
			s.leftNothing()
		}},
		"a sub-handler's, and it is being deleted when it is applied": {func(foo *dsl.Resource, j *journal) {
			foo.Owns(configMaps)
			foo.On(both(), "whole", func(_ ctx, r *dsl.Request) error {
				r.Handle("part", func(ctx ctx, r *dsl.Request) error {
					_, err := r.Children.Apply(ctx, settings("elsewhere", "x"), dsl.ChildSpec{Handler: "whole", Name: "settings", Ownership: dsl.Labelled})
					return err
				})
				return nil
			}, dsl.Field("spec.size"))
		}, func(s *stage) {
			begins(s)
			s.drift("elsewhere", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/hold"}) })
			s.Delete(configMaps, "elsewhere", "web")
			s.Settle()
			s.size(2)
			s.Advance(10 * time.Minute)
			s.drift("elsewhere", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Advance(10 * time.Minute)
			s.value("elsewhere", "x")
			s.leavesNothing()
		}},
	})
}
