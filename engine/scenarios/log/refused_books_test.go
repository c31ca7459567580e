// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnEventSaysThatABookIsRefused holds that an Event says that the API server refuses what the engine itself writes: at
// once where the server does not take it, and with the second refusal where a right is missing, for a server that starts
// refuses for a moment.
func TestAnEventSaysThatABookIsRefused(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "foos"}, "web", errors.New("RBAC: not yet"))
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, "web", nil)
	for name, test := range map[string]struct {
		errs []error
		want int
	}{
		"a right is missing once": {[]error{forbidden}, 0}, "a right is missing twice": {[]error{forbidden, forbidden}, 1}, "it is not valid": {[]error{invalid}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) { foo.OnUpdate("sync", scene.Succeeds) }, Play: func(s *scene.Stage) {
				s.Begin()
				s.Events()
				s.FailNext("patch", scene.Foos, test.errs...)
				s.Resize(2)
				s.Advance(time.Minute)
				reported := 0
				for _, e := range s.Events() {
					if e.Reason == "WriteRefused" {
						reported++
					}
				}
				if reported != test.want {
					t.Errorf("%d Events say that the write was refused, want %d", reported, test.want)
				}
			}})
		})
	}
}
