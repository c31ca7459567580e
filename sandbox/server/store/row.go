// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Row is an object at one version.
type Row struct {
	Namespace, Name string
	Version         int64
	// Labels are those of the object. They are not to be changed.
	Labels labels.Set

	apiVersion, kind string
	// metadata is encoded; rest has the other members, each after a comma.
	metadata, rest []byte
	// tree is the object as long as somebody else uses it, or until the next collection of garbage.
	tree atomic.Pointer[weak.Pointer[unstructured.Unstructured]]
}

// NewRow encodes an object. From then on the object must not be changed.
func NewRow(o *unstructured.Unstructured) *Row {
	r := &Row{Namespace: o.GetNamespace(), Name: o.GetName(), Labels: o.GetLabels(), apiVersion: o.GetAPIVersion(), kind: o.GetKind()}
	r.Version, _ = strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	out := put(nil, o.Object["metadata"])
	split := len(out)
	for _, key := range slices.Sorted(maps.Keys(o.Object)) {
		switch key {
		case "apiVersion", "kind", "metadata":
			continue
		}
		out = append(put(append(out, ','), key), ':')
		out = put(out, o.Object[key])
	}
	data := bytes.Clone(out)
	r.metadata, r.rest = data[:split:split], data[split:]
	r.remember(o)
	return r
}

// put appends a value in JSON.
func put(to []byte, value any) []byte {
	out, err := plain.AppendJSON(to, value)
	if err != nil {
		panic(fmt.Sprintf("store: encoding an object: %v", err)) // not reached: it came as JSON
	}
	return out
}

func (r *Row) remember(o *unstructured.Unstructured) {
	pointer := weak.Make(o)
	r.tree.Store(&pointer)
}

// Tree returns the object. It is not to be changed: others may use it, too.
func (r *Row) Tree() *unstructured.Unstructured {
	if o := r.tree.Load().Value(); o != nil {
		return o
	}
	o := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(r.Append(nil, r.apiVersion), &o.Object); err != nil {
		panic(fmt.Sprintf("store: decoding %s/%s: %v", r.Namespace, r.Name, err)) // not reached: it was encoded here
	}
	r.remember(o)
	return o
}

// APIVersion is the version of the API in which the object is stored.
func (r *Row) APIVersion() string { return r.apiVersion }

// Append appends the object in JSON, as an API version shows it.
func (r *Row) Append(to []byte, apiVersion string) []byte {
	return append(append(r.head(to, apiVersion, r.kind), r.rest...), '}')
}

// AppendItem appends the object in JSON as an item of a list that says which kind its items have.
func (r *Row) AppendItem(to []byte) []byte {
	to = append(slices.Grow(to, r.Size()), `{"metadata":`...)
	return append(append(append(to, r.metadata...), r.rest...), '}')
}

// AppendMetadata appends the object in JSON as a PartialObjectMetadata of an API version.
func (r *Row) AppendMetadata(to []byte, apiVersion string) []byte {
	return append(r.head(to, apiVersion, "PartialObjectMetadata"), '}')
}

// Size is the length of the object's JSON in bytes, more or less.
func (r *Row) Size() int { return len(r.metadata) + len(r.rest) + 64 }

// head appends the object up to the end of its metadata.
func (r *Row) head(to []byte, apiVersion, kind string) []byte {
	to = slices.Grow(to, r.Size())
	to = append(to, `{"apiVersion":`...)
	to = strconv.AppendQuote(to, apiVersion)
	to = append(to, `,"kind":`...)
	to = strconv.AppendQuote(to, kind)
	to = append(to, `,"metadata":`...)
	return append(to, r.metadata...)
}
