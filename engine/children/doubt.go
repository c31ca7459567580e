// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/inbox"
)

// mostLooks is how many children a pass over a living owner looks for on the server.
const mostLooks = 8

// doubt notes that there may be a child which no cache shows.
func (s *Session) doubt(place ownership.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubtLocked(place)
}

// doubtLocked is doubt for callers that hold the lock.
func (s *Session) doubtLocked(place ownership.Place) {
	s.pass.Memory.doubts = s.pass.Memory.doubts.With(s.pass.Now, map[ownership.Place]string{place: ""})
}

// some returns doubts, nil where there are none: nothing is remembered of an object without any.
func some(doubts *ownership.Record) *ownership.Record {
	if doubts.Empty() {
		return nil
	}
	return doubts
}

// open returns the places at which there may be a child that no cache shows, sorted.
func (s *Session) open() []ownership.Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pass.Memory.doubts.Places()
}

// denied reports whether an error is an answer of the server which says that it did nothing.
func denied(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	code := answer.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}

// Find looks on the server for children that an owner which is being deleted may have: a request that should have made one got
// no answer, and no cache shows the child. It reports whether it found one: the owner's next pass waits for it. An error
// says that it is still not known.
func (s *Session) Find(ctx context.Context) (found bool, err error) {
	if !s.pass.Deleting || s.pass.Gone {
		return false, nil
	}
	return s.findMost(ctx, len(s.open()))
}

// findMost is Find for any owner, and for so many children at most.
func (s *Session) findMost(ctx context.Context, most int) (found bool, err error) {
	owner := s.owner()
	for _, place := range s.open() {
		there, _ := s.family.claimed(owner, place)
		if !there {
			if most--; most < 0 {
				return found, nil
			}
			if there, err = s.look(ctx, owner, place); err != nil {
				return found, fmt.Errorf("looking for %s, whose creation got no answer: %w", place.People(), err)
			}
			found = found || there
		}
		s.mu.Lock()
		s.pass.Memory.doubts = some(s.pass.Memory.doubts.Without(place))
		s.mu.Unlock()
	}
	return found, nil
}

// look reports whether the server has an object at a place that says it is the owner's. If so, the next pass waits for it.
func (s *Session) look(ctx context.Context, owner ownership.Owner, place ownership.Place) (there bool, err error) {
	kind, _ := s.family.shows(place)
	if kind == nil {
		return false, s.family.unknown()
	}
	key := cache.ObjectName{Namespace: place.Namespace, Name: place.Name}
	live, err := s.family.settings.Host.Read(ctx, kind.Resource().GVR, key)
	if apierrors.IsForbidden(err) {
		live, err = s.family.listOne(ctx, kind, key) // a list takes no right that the cache does not need
	}
	if err != nil || live == nil || !owner.Lists(live) {
		return false, err
	}
	s.note(Write{Write: inbox.Write{Cache: kind, Key: key, UID: live.GetUID(), Version: live.GetResourceVersion()}})
	return true, nil
}

// listOne reads an object by a list. It returns nil where the list is empty.
func (f *Family) listOne(ctx context.Context, kind *feed.Feed, key cache.ObjectName) (*unstructured.Unstructured, error) {
	list, err := f.settings.Host.Client(kind.Resource().GVR, key.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String(),
	})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// unknown returns why it is not known yet which kinds a resource owns; nil when it is.
func (f *Family) unknown() error {
	for _, kind := range f.feeds {
		if err := kind.Complete(); err != nil && !kind.Known() {
			return fmt.Errorf("listing children: %w", err)
		}
	}
	return nil
}
