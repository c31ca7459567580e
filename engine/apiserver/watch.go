// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"

	"github.com/handwerk-dev/handwerk/engine/apiserver/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// watch answers a watch with a stream.
func (s *Server) watch(ctx context.Context, t *table, r Request) (any, error) {
	sel, err := selectorOf(t, r)
	if err != nil {
		return nil, err
	}
	options, err := listOptions(r)
	if err != nil {
		return nil, err
	}
	from, err := versionOf(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	st := newStream(ctx, s, t, r, sel)
	streamed := options.SendInitialEvents != nil && *options.SendInitialEvents
	switch {
	case streamed && s.future(from) != nil:
		return nil, s.future(from)
	case streamed || from == 0 && options.SendInitialEvents == nil:
		for _, row := range t.chosen(t.objects.In(r.Namespace), sel) {
			st.send(store.Added, row)
		}
		st.allow(s.history)
		if streamed && options.AllowWatchBookmarks {
			st.bookmark(s.version, true)
		}
	case from > 0:
		changes, known := t.objects.Since(from)
		if !known {
			st.expired(fmt.Sprintf("too old resource version: %d (%d)", from, t.objects.Forgotten()))
			return st, nil
		}
		st.hold(t.held)
		st.after = from
		for _, c := range changes {
			st.tell(c)
		}
		st.allow(s.history)
	}
	st.hold(t.held)
	t.streams[st] = true
	return st, nil
}

// expired tells the client to list again, and ends the stream.
func (s *stream) expired(why string) {
	s.hold(false)
	s.push(item{what: "ERROR", object: statusOf(apierrors.NewResourceExpired(why))})
	s.end()
}
