// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// placesNamed are ConfigMaps with these names.
func placesNamed(names ...string) (out []ownership.Place) {
	for _, name := range names {
		out = append(out, ownership.Place{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "far", Name: name})
	}
	return out
}

func recordOf(names ...string) (r *ownership.Record) {
	for _, place := range placesNamed(names...) {
		r = r.With(time.Time{}, map[ownership.Place]string{place: "h/c"})
	}
	return r
}

// TestUnconfirmedPlaces holds which places are kept for the next pass.
func TestUnconfirmedPlaces(t *testing.T) {
	tests := map[string]struct {
		before *ownership.Record
		do     func(*unconfirmed)
		want   []ownership.Place
	}{
		"a place is added": {nil, func(u *unconfirmed) { u.add(placesNamed("a")[0]) }, placesNamed("a")},
		"the places of a record join those of before": {recordOf("a"), func(u *unconfirmed) { u.addAll(recordOf("b")) }, placesNamed("a", "b")},
		"without a record those of before stay":       {recordOf("a"), func(u *unconfirmed) { u.addAll(nil) }, placesNamed("a")},
		"a place is removed":                          {recordOf("a", "b"), func(u *unconfirmed) { u.remove(placesNamed("a")...) }, placesNamed("b")},
		"nothing is kept after the last one":          {recordOf("a"), func(u *unconfirmed) { u.remove(placesNamed("a")...) }, nil},
		"nothing is kept of an empty record":          {nil, func(u *unconfirmed) { u.addAll(recordOf("a").Without(placesNamed("a")...)) }, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			memory := tt.before
			u := &unconfirmed{memory: &memory}
			tt.do(u)
			if diff := cmp.Diff(tt.want, u.places()); diff != "" || (memory == nil) != (tt.want == nil) {
				t.Errorf("memory is %v, places (-want +got):\n%s", memory, diff)
			}
			for _, place := range tt.want {
				if !u.has(place) {
					t.Errorf("%s is not among them", place)
				}
			}
		})
	}
}

// TestDenied holds which errors of a creation say that nothing was created.
func TestDenied(t *testing.T) {
	maps := schema.GroupResource{Resource: "configmaps"}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"a forbidden request is denied":                {apierrors.NewForbidden(maps, "c", nil), true},
		"a conflict is denied":                         {fmt.Errorf("creating: %w", apierrors.NewConflict(maps, "c", nil)), true},
		"a request that took too long may have worked": {apierrors.NewGenericServerResponse(http.StatusRequestTimeout, "patch", maps, "c", "", 0, false), false},
		"an internal error may come after the write":   {apierrors.NewInternalError(errors.New("x")), false},
		"a lost connection says nothing":               {errors.New("EOF"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := denied(tt.err); got != tt.want {
				t.Errorf("denied is %v", got)
			}
		})
	}
}
