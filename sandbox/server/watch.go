// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// watch answers a watch with a stream.
func (s *Server) watch(ctx context.Context, t *table, r Request) (any, error) {
	sel, options, err := s.selection(t, r)
	if err != nil {
		return nil, err
	}
	from, err := versionOf(options.ResourceVersion)
	if err != nil {
		return nil, internalError(err)
	}
	st := newStream(ctx, s, t, r, sel)
	switch initial := options.SendInitialEvents; {
	case initial == nil && from == 0:
		st.begin()
	case initial != nil && *initial:
		if err := s.future(from); err != nil {
			st.fail(err)
			return st, nil
		}
		if st.begin(); options.AllowWatchBookmarks {
			st.bookmark(s.version, true)
		}
	case from > 0:
		if !st.resume(from) {
			return st, nil
		}
	}
	st.hold(t.held)
	st.allow(s.history)
	t.streams[st] = true
	return st, nil
}

// begin sends the current objects.
func (s *stream) begin() {
	for _, row := range s.table.chosen(s.table.objects.In(s.request.Namespace), s.selector) {
		s.send(store.Added, row)
	}
}

// resume sends the changes after a version. If some of them have been forgotten, it ends the stream and reports false.
func (s *stream) resume(from int64) bool {
	changes, known := s.table.objects.Since(from)
	if !known {
		s.expired(fmt.Sprintf("too old resource version: %d (%d)", from, s.table.objects.Forgotten()))
		return false
	}
	s.hold(s.table.held)
	s.after = from
	for _, c := range changes {
		s.tell(c)
	}
	return true
}

// expired tells the client to list again, and ends the stream.
func (s *stream) expired(why string) {
	s.hold(false)
	s.fail(apierrors.NewResourceExpired(why))
}

// fail ends the stream with an error.
func (s *stream) fail(err error) {
	s.push(item{what: "ERROR", object: statusOf(err)})
	s.end()
}
