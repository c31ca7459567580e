// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// page is a part of a list, as it was at one version.
type page struct {
	rows    []*store.Row
	version int64
	// next is the token of the rest; empty if there is none.
	next string
	// remaining is the number of objects after the page, if it is known.
	remaining *int64
}

// list answers a list with a page that is encoded when it is sent.
func (s *Server) list(t *table, r Request) (any, error) {
	sel, options, err := s.selection(t, r)
	if err != nil {
		return nil, err
	}
	p, err := s.pageOf(t, r, options)
	if err != nil {
		return nil, err
	}
	p.rows = t.chosen(p.rows, sel)
	if options.ResourceVersion != "0" { // which is served from a cache that knows no limit
		p.end(r.Namespace, options.Limit, sel.empty())
	}
	return s.newListing(t, r, p), nil
}

// pageOf returns the page that begins where the client wants, up to the end of the list.
func (s *Server) pageOf(t *table, r Request, options metav1.ListOptions) (page, error) {
	if options.Continue != "" {
		return s.continued(t, r, options)
	}
	version, err := versionOf(options.ResourceVersion)
	if err != nil {
		return page{}, apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	if err := s.future(version); err != nil {
		return page{}, err
	}
	exact := options.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	if exact || options.ResourceVersionMatch == "" && options.Limit > 0 && version > 0 {
		rows, known := t.objects.At(version, r.Namespace)
		if !known || version < s.compacted() {
			return page{}, apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
		}
		return page{rows: rows, version: version}, nil
	}
	return page{rows: t.objects.In(r.Namespace), version: s.version}, nil
}

// continued returns the page after a token: at the version of the first page, or at the current one if the token
// says so.
func (s *Server) continued(t *table, r Request, options metav1.ListOptions) (page, error) {
	from, err := decodeToken(options.Continue)
	if err != nil {
		return page{}, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	}
	if options.ResourceVersion != "" && options.ResourceVersion != "0" {
		return page{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	out := page{version: from.Version}
	if from.Version < 0 {
		out.version = s.version
	}
	rows, known := t.objects.At(out.version, r.Namespace)
	if !known || out.version < s.compacted() {
		return page{}, expiredToken(from)
	}
	out.rows = slices.DeleteFunc(rows, func(row *store.Row) bool { return !from.precedes(row, r.Namespace) })
	return out, nil
}

// end ends the page after a number of objects; 0 means that it has all. The rest is counted if every object was
// selected.
func (p *page) end(namespace string, limit int64, count bool) {
	rest := int64(len(p.rows)) - limit
	if limit <= 0 || rest <= 0 {
		return
	}
	p.rows = p.rows[:limit]
	p.next = tokenAfter(p.rows[limit-1], namespace, p.version).encode()
	if count {
		p.remaining = &rest
	}
}

// versionOf parses the version of a request; 0 means that it has none.
func versionOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion: Invalid value: %q: %w", text, err)
	}
	return int64(version), nil
}

// future returns the error for a request with a version that has not been reached.
func (s *Server) future(version int64) error {
	if version <= s.version {
		return nil
	}
	out := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, s.version), 1)
	out.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return out
}
