// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/handwerk-dev/handwerk/sandbox/server/print"
	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// partSize is how much JSON of a list or a watch is encoded at once, in bytes.
const partSize = 32 << 10

// newPart makes an empty buffer for a part, which is often a little longer than its size.
func newPart() any { return new(make([]byte, 0, partSize+partSize/4)) }

// listing is a list as the body of a response. It is encoded while it is read, without the server's lock.
type listing struct {
	server  *Server
	table   *table
	request Request
	rows    []*store.Row
	// sent is how many of the rows have been encoded.
	sent int
	// left is encoded and not read. It is a piece of part, which is one of the server's; nil if nothing is left of it.
	left []byte
	part *[]byte
	done bool
}

func (s *Server) newListing(t *table, r Request, p page) *listing {
	kind, apiVersion := t.kind+"List", t.apiVersion(r.Resource.Version)
	if r.partial() {
		kind, apiVersion = "PartialObjectMetadataList", r.shape.apiVersion()
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(p.version, 10), Continue: p.next, RemainingItemCount: p.remaining}
	head := encoded(meta)
	if t.custom && p.next == "" && !r.partial() {
		head = encoded(map[string]any{"continue": "", "resourceVersion": meta.ResourceVersion})
	}
	head = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind, apiVersion, head)
	if r.tabular() {
		if t.group == "storage.k8s.io" && t.plural == "storageclasses" {
			r.columns = print.MarkDefault(r.columns, t.trees(p.rows))
		}
		head = fmt.Appendf(nil, `{"kind":"Table","apiVersion":%q,"metadata":%s,"columnDefinitions":%s,"rows":[`,
			r.shape.apiVersion(), encoded(meta), encoded(print.Definitions(r.columns)))
	}
	out := &listing{server: s, table: t, request: r, left: head, rows: p.rows}
	if r.partial() && len(p.rows) == 0 { // a real server has no list then
		out.left, out.done = append(bytes.TrimSuffix(head, []byte("[")), "null}\n"...), true
	}
	return out
}

// trees returns the objects of rows. They are not to be changed.
func (t *table) trees(rows []*store.Row) (out []map[string]any) {
	for _, row := range rows {
		out = append(out, t.asShown(row.Tree()).Object)
	}
	return out
}

// Read encodes a part of the list as soon as the part before has been read.
func (l *listing) Read(p []byte) (int, error) {
	if len(l.left) == 0 {
		if l.done {
			return 0, io.EOF
		}
		l.fill()
	}
	n := copy(p, l.left)
	if l.left = l.left[n:]; len(l.left) == 0 && l.part != nil {
		l.server.parts.Put(l.part)
		l.part = nil
	}
	return n, nil
}

// Close does nothing.
func (l *listing) Close() error { return nil }

func (l *listing) fill() {
	l.part = l.server.parts.Get().(*[]byte)
	part := (*l.part)[:0]
	for ; l.sent < len(l.rows) && len(part) < partSize; l.sent++ {
		if l.sent > 0 {
			part = append(part, ',')
		}
		part = l.append(part, l.rows[l.sent])
	}
	if l.sent == len(l.rows) {
		part, l.done = append(part, "]}\n"...), true
	}
	*l.part, l.left = part, part
}

// append appends an item. Those of built-in kinds have no kind of their own: the list has it.
func (l *listing) append(to []byte, row *store.Row) []byte {
	switch {
	case l.request.tabular():
		return append(to, encoded(rowOf(l.table, l.request, l.table.asShown(row.Tree())))...)
	case l.table.custom || l.request.partial():
		return appendRow(to, l.table, l.request, row)
	case l.table.shown == nil && l.request.view.as(row.APIVersion(), row.Version):
		return row.AppendItem(to)
	}
	item := present(l.table, l.request, l.table.asShown(row.Tree()))
	delete(item, "apiVersion")
	delete(item, "kind")
	return append(to, encoded(item)...)
}

// appendRow appends an object in JSON, in the form that the client asks for.
func appendRow(to []byte, t *table, r Request, row *store.Row) []byte {
	if r.partial() { // as it is stored, also on a real server
		return row.AppendMetadata(to, r.shape.apiVersion())
	}
	if t.shown != nil || r.tabular() || !r.view.as(row.APIVersion(), row.Version) {
		data, err := json.Marshal(present(t, r, t.asShown(row.Tree())))
		if err != nil {
			panic("server: " + err.Error()) // not reached: it was encoded before
		}
		return append(to, data...)
	}
	return row.Append(to, t.apiVersion(r.Resource.Version))
}
