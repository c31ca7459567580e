// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestARefusedBookIsTold holds that an Event says that the API server refuses what the engine itself writes: at once where the
// server does not take it, and with the second refusal where a right is missing, for a server that starts refuses for a moment.
func TestARefusedBookIsTold(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "foos"}, "web", errors.New("RBAC: not yet"))
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, "web", nil)
	for name, test := range map[string]struct {
		errs []error
		want int
	}{
		"a right is missing once": {[]error{forbidden}, 0}, "a right is missing twice": {[]error{forbidden, forbidden}, 1}, "it is not valid": {[]error{invalid}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{func(foo *dsl.Resource, _ *journal) { foo.OnUpdate("sync", succeeds) }, func(s *stage) {
				s.begin()
				s.Events()
				s.FailNext("patch", foos, test.errs...)
				s.size(2)
				s.Advance(time.Minute)
				told := 0
				for _, e := range s.Events() {
					if e.Reason == "WriteRefused" {
						told++
					}
				}
				if told != test.want {
					t.Errorf("%d Events say that the write was refused, want %d", told, test.want)
				}
			}})
		})
	}
}
