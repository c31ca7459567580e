// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/feed"
)

// unserved is endUnseen for a child whose kind the API server serves in no version. The child is gone where its CRD is: the API
// server removes a CRD after its last object.
func (s *Session) unserved(ctx context.Context, place ownership.Place) (again time.Duration, open bool, err error) {
	extinct, doubt := s.family.settings.Feeds.Extinct(ctx, place.Kind)
	if extinct {
		return 0, false, nil
	}
	if doubt != nil {
		s.hold(fmt.Sprintf("whether its child %s is there cannot be told: the API server does not serve %s, and %v", place.People(), place.Kind, doubt))
	}
	return searchLook, true, nil
}

// blind reports whether the children of some kind cannot be seen. Where that may last, the owner says so.
func (s *Session) blind() bool {
	err := s.family.complete()
	if unread, is := errors.AsType[*feed.UnreadError](err); is && (unread.Phase == feed.Unserved || unread.Phase == feed.Forbidden) {
		s.hold(err.Error())
	}
	return err != nil
}

// hold says on the owner what its deletion waits for.
func (s *Session) hold(why string) {
	s.family.settings.Events.Warn(s.pass.Object, "children", "DeletionHeld", "Deletion is held: "+why)
}
