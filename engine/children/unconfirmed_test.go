// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
)

// placesNamed are ConfigMaps with these names.
func placesNamed(names ...string) (out []ownership.Place) {
	for _, name := range names {
		out = append(out, ownership.Place{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "far", Name: name})
	}
	return out
}

func inventoryOf(names ...string) (r *ownership.Inventory) {
	for _, place := range placesNamed(names...) {
		r = r.With(time.Time{}, map[ownership.Place]string{place: "h/c"})
	}
	return r
}

// TestUnconfirmedPlaces holds which places are kept for the next reconcile.
func TestUnconfirmedPlaces(t *testing.T) {
	tests := map[string]struct {
		before *ownership.Inventory
		do     func(*unconfirmed)
		want   []ownership.Place
	}{
		"a place is added": {nil, func(u *unconfirmed) { u.add(placesNamed("a")[0]) }, placesNamed("a")},
		"the places of an inventory join those of before": {inventoryOf("a"), func(u *unconfirmed) { u.addAll(inventoryOf("b")) }, placesNamed("a", "b")},
		"without an inventory those of before stay":       {inventoryOf("a"), func(u *unconfirmed) { u.addAll(nil) }, placesNamed("a")},
		"a place is removed":                              {inventoryOf("a", "b"), func(u *unconfirmed) { u.remove(placesNamed("a")...) }, placesNamed("b")},
		"nothing is kept after the last one":              {inventoryOf("a"), func(u *unconfirmed) { u.remove(placesNamed("a")...) }, nil},
		"nothing is kept of an empty inventory":           {nil, func(u *unconfirmed) { u.addAll(inventoryOf("a").Without(placesNamed("a")...)) }, nil},
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

// allocated returns how many bytes of memory a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestManyUnconfirmedPlacesCostLittle holds that an owner with many children needs memory in proportion to them when no cache has shown
// them yet, and when all of them have come to the cache at once, as after a start.
func TestManyUnconfirmedPlacesCostLittle(t *testing.T) {
	tests := map[string]func(*ownerInventory, *ownership.Inventory){
		"the places of an inventory join those of before": func(r *ownerInventory, all *ownership.Inventory) { r.unconfirmed.addAll(all) },
		"a write of the inventory finds them in the cache": func(r *ownerInventory, all *ownership.Inventory) {
			if left := r.outdated(all); len(left) > 0 {
				t.Errorf("%d places have no child", len(left))
			}
		},
		"a search finds them in the cache": func(r *ownerInventory, all *ownership.Inventory) {
			if found, err := r.find(t.Context(), 0); found || err != nil {
				t.Errorf("found is %v, and the error %v", found, err)
			}
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			few, many := costOf(t, 250, do), costOf(t, 2000, do)
			if many > 16*few {
				t.Errorf("250 places take %d bytes, and 2000 take %d", few, many)
			}
		})
	}
}

// costOf returns how many bytes of memory a function allocates for an owner with so many children that are in the cache and unconfirmed.
func costOf(t *testing.T, n int, do func(*ownerInventory, *ownership.Inventory)) (bytes uint64) {
	synctest.Test(t, func(t *testing.T) {
		keys, titles := ownership.KeysOf(dsl.New("demo")), map[ownership.Place]string{}
		var there []apiruntime.Object
		for i := range n {
			o := configMap()
			o.SetName(fmt.Sprintf("child-%d", i))
			o.SetLabels(map[string]string{keys.Label: "owner"})
			there, titles[ownership.PlaceOf(o)] = append(there, o), "h/c"
		}
		var none *ownership.Inventory
		memory, all := none.With(time.Time{}, titles), none.With(time.Time{}, titles)
		r := inventoryOver(t, nil, there...)
		r.unconfirmed = &unconfirmed{memory: &memory}
		bytes = allocated(func() { do(r, all) })
	})
	return bytes
}

// inventoryOver returns the inventory of an owner with uid owner, where the cache has these config maps.
func inventoryOver(t *testing.T, host Host, there ...apiruntime.Object) *ownerInventory {
	t.Helper()
	f, _ := configMaps(t, func(watch.Event) {}, there...)
	go f.Run(t.Context())
	synctest.Wait()
	op := dsl.New("demo")
	family := &Family{
		settings: Settings{Operator: op, Own: f, Host: host}, names: namesOf(op),
		kinds: kinds{own: f, feeds: []*source.Source{f}, retired: prune.NewRetired(prune.RetiredSettings{})},
	}
	owner := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "owner"}}}
	return &ownerInventory{family: family, in: &Input{Object: owner}, lister: &lister{}}
}

// busy is a host whose answers come after something else has happened.
type busy struct {
	Host
	meanwhile func()
	err       error
}

func (b busy) Read(context.Context, schema.GroupVersionResource, cache.ObjectName) (*unstructured.Unstructured, error) {
	b.meanwhile()
	return nil, b.err
}

// TestLookingForUnconfirmedPlaces holds which places stay unconfirmed when the server was asked.
func TestLookingForUnconfirmedPlaces(t *testing.T) {
	place, down := placesNamed("a")[0], errors.New("down")
	tests := map[string]struct {
		meanwhile func(*unconfirmed)
		err       error
		want      []ownership.Place
	}{
		"the server has no child":                         {func(*unconfirmed) {}, nil, nil},
		"the server does not answer":                      {func(*unconfirmed) {}, down, []ownership.Place{place}},
		"another creation there gets no answer meanwhile": {func(u *unconfirmed) { u.add(place) }, nil, []ownership.Place{place}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := inventoryOf("a")
				u := &unconfirmed{memory: &memory}
				r := inventoryOver(t, busy{meanwhile: func() { tt.meanwhile(u) }, err: tt.err})
				r.unconfirmed = u
				if _, err := r.find(t.Context(), 1); !errors.Is(err, tt.err) {
					t.Errorf("the error is %v", err)
				}
				if diff := cmp.Diff(tt.want, u.places()); diff != "" {
					t.Errorf("places (-want +got):\n%s", diff)
				}
			})
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
