// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// unconfirmed has the places that may have a child that no cache shows: its creation got no answer, or an earlier
// process made it. Places from the owner's inventory stay until the child is seen or searched for.
type unconfirmed struct {
	now time.Time

	mu sync.Mutex
	// memory points to the places that are kept from one reconcile to the next; to nil for none.
	memory **ownership.Inventory
}

// add adds a place.
func (u *unconfirmed) add(place ownership.Place) {
	u.mu.Lock()
	defer u.mu.Unlock()
	*u.memory = (*u.memory).With(u.now, map[ownership.Place]string{place: ""})
}

// addAll adds the places of an inventory.
func (u *unconfirmed) addAll(inventory *ownership.Inventory) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := map[ownership.Place]string{}
	for _, place := range (*u.memory).Places() {
		before[place] = ""
	}
	if len(before) > 0 {
		inventory = inventory.With(u.now, before) // in one call, because each call copies the inventory, which may list thousands
	}
	if *u.memory = inventory; inventory.Empty() {
		*u.memory = nil
	}
}

// remove removes places whose state is known.
func (u *unconfirmed) remove(places ...ownership.Place) {
	if len(places) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if *u.memory = (*u.memory).Without(places...); (*u.memory).Empty() {
		*u.memory = nil
	}
}

// has reports whether a place is unconfirmed.
func (u *unconfirmed) has(place ownership.Place) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return (*u.memory).Lists(place)
}

// places returns the unconfirmed places, sorted.
func (u *unconfirmed) places() []ownership.Place {
	u.mu.Lock()
	defer u.mu.Unlock()
	return (*u.memory).Places()
}

// mostLooks bounds the children that a reconcile searches for on the server, unless the owner is being deleted.
const mostLooks = 8

// Find searches the server for unconfirmed children of an owner that is being deleted. A request that should have
// created such a child got no answer, and no cache shows it. Find reports whether it found one: the owner's next
// reconcile waits for it. After an error, the children are still unknown.
func (s *Session) Find(ctx context.Context) (found bool, err error) {
	if !s.in.Deleting || s.in.Gone {
		return false, nil
	}
	return s.inventory.find(ctx, len(s.unconfirmed.places()))
}

// find is Find for any owner, and for at most so many children.
func (r *ownerInventory) find(ctx context.Context, most int) (found bool, err error) {
	owner := r.owner()
	var seen, unseen []ownership.Place
	for _, place := range r.unconfirmed.places() {
		if there, _ := r.family.kinds.claimed(owner, place); there {
			seen = append(seen, place)
		} else {
			unseen = append(unseen, place)
		}
	}
	r.unconfirmed.remove(seen...)
	for _, place := range unseen[:min(most, len(unseen))] {
		r.unconfirmed.remove(place) // before the request, because meanwhile another handler's creation there may get no answer
		there, err := r.look(ctx, owner, place)
		if err != nil {
			r.unconfirmed.add(place)
			return found, fmt.Errorf("looking for %s, whose creation got no answer: %w", place.Describe(), err)
		}
		found = found || there
	}
	return found, nil
}

// look reports whether the server has an object at a place that names the owner as its own. If so, the next reconcile
// waits for it.
func (r *ownerInventory) look(ctx context.Context, owner ownership.Owner, place ownership.Place) (there bool, err error) {
	kind, _ := r.family.kinds.shows(place)
	if kind == nil {
		return false, r.family.kinds.unknown()
	}
	key := cache.ObjectName{Namespace: place.Namespace, Name: place.Name}
	live, err := r.family.settings.Host.Read(ctx, kind.Resource().GVR, key)
	if apierrors.IsForbidden(err) {
		live, err = r.family.listOne(ctx, kind, key) // a list needs only rights that the cache needs, too
	}
	if err != nil || live == nil || !owner.Lists(live) {
		return false, err
	}
	r.journal.note(Write{Write: inbox.Write{Cache: kind, Key: key, UID: live.GetUID(), Version: live.GetResourceVersion()}})
	return true, nil
}

// listOne reads an object by a list. It returns nil if the list is empty.
func (f *Family) listOne(ctx context.Context, kind *source.Source, key cache.ObjectName) (*unstructured.Unstructured, error) {
	list, err := f.settings.Host.Client(kind.Resource().GVR, key.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String(),
	})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// denied reports whether an error is a rejection by the server, so the request had no effect.
func denied(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	code := answer.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}
