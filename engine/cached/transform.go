// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

// NewTransform returns what turns an object that a client decoded, whole or its metadata alone, into an
// *[Object] of the form. It is an informer's transform, so it never fails: an error there would lose the
// event. What it cannot encode it logs and holds as the live profile does. It may be called by any number
// of goroutines. Anything else, and what it has made, it returns as it is: client-go shows it each object
// of a streamed list twice.
//
// The group and version are those that the objects are watched at. NewTransform fails when Form.Keep
// is faulty.
func NewTransform(form Form, gv schema.GroupVersion, log logr.Logger) (func(any) (any, error), error) {
	keep, err := parseKeep(form.Keep)
	if err != nil {
		return nil, err
	}
	t := &transformer{form: form, apiVersion: gv.String(), keep: keep, log: log}
	t.encoders.New = func() any { return new(encoder) }
	return t.transform, nil
}

type transformer struct {
	form       Form
	apiVersion string
	keep       projection
	log        logr.Logger
	encoders   sync.Pool
}

func (t *transformer) transform(in any) (any, error) {
	switch obj := in.(type) {
	case *unstructured.Unstructured:
		return t.compact(obj), nil
	case *metav1.PartialObjectMetadata:
		return t.partial(obj), nil
	default:
		return in, nil
	}
}

func (t *transformer) compact(u *unstructured.Unstructured) *Object {
	o := routing(u.Object)
	t.hold(o, "encoding object: it will be read from the server", func(e *encoder) ([]byte, int, int, error) {
		return e.whole(t.keep.of(u.Object), t.managers(u.GetAnnotations))
	})
	return o
}

// managers are the field managers whose entries of an object are held.
type managers struct {
	own   string // empty when it is none
	hands bool
}

func (m managers) hold(manager string) bool {
	return m.own != "" && manager == m.own || m.hands && bookkeeping.HandOf(manager) != bookkeeping.NoHand
}

func (t *transformer) managers(annotations func() map[string]string) managers {
	if t.form.Vouches == "" && t.form.Made == "" {
		return managers{own: t.form.Manager}
	}
	notes, out := annotations(), managers{}
	if t.form.Vouches == "" || strings.HasPrefix(notes[t.form.Vouches], t.form.Vouched) {
		out.own = t.form.Manager
	}
	out.hands = t.form.Made != "" && strings.HasPrefix(notes[t.form.Made], bookkeeping.AppliedMark)
	return out
}

// hold makes the object hold what an encoder writes. It copies the bytes, so that not a byte more than
// they need stays in memory. Failed is what the log says when nothing can be written.
func (t *transformer) hold(o *Object, failed string, write func(*encoder) (out []byte, from, to int, err error)) {
	e := t.encoders.Get().(*encoder)
	defer t.encoders.Put(e)
	out, from, to, err := write(e)
	if err != nil {
		t.log.Error(err, failed, "namespace", o.GetNamespace(), "name", o.GetName())
		return
	}
	o.raw = make([]byte, len(out))
	copy(o.raw, out)
	o.metadata.from, o.metadata.to = uint32(from), uint32(to)
}

// routing picks what an Object holds decoded. The lookups of Unstructured would walk the tree for
// each field anew.
func routing(tree map[string]any) *Object {
	m, _ := tree["metadata"].(map[string]any)
	o := &Object{
		kind:      unique.Make(typeMeta{text(tree, "apiVersion"), text(tree, "kind")}),
		namespace: unique.Make(text(m, "namespace")),
		name:      text(m, "name"),
		uid:       types.UID(text(m, "uid")),
		version:   text(m, "resourceVersion"),
		created:   moment(m, "creationTimestamp"),
		deleted:   moment(m, "deletionTimestamp"),
	}
	o.generation, _ = m["generation"].(int64)
	refs, _ := m["ownerReferences"].([]any)
	o.owners = ownersOf(refs, ownerIn)
	return o
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func moment(m map[string]any, key string) seconds {
	at, err := time.Parse(time.RFC3339, text(m, key))
	if err != nil {
		return 0
	}
	return secondsOf(at)
}

func (t *transformer) partial(p *metav1.PartialObjectMetadata) *Object {
	kind := t.kindOf(p)
	o := &Object{
		kind:       unique.Make(kind),
		namespace:  unique.Make(p.Namespace),
		name:       p.Name,
		uid:        p.UID,
		version:    p.ResourceVersion,
		generation: p.Generation,
		created:    secondsOf(p.CreationTimestamp.Time),
	}
	if p.DeletionTimestamp != nil {
		o.deleted = secondsOf(p.DeletionTimestamp.Time)
	}
	o.owners = ownersOf(p.OwnerReferences, ownerOf)
	if t.form.Profile == dsl.CacheMetadata {
		t.holdPartial(o, p)
	}
	return o
}

// kindOf returns the kind of an object of which only the metadata came. A server gives it the
// kind PartialObjectMetadata.
func (t *transformer) kindOf(p *metav1.PartialObjectMetadata) typeMeta {
	kind := typeMeta{apiVersion: t.apiVersion, kind: t.form.Kind}
	if kind.kind == "" && p.GroupVersionKind().Group != metav1.GroupName {
		kind.kind = p.Kind
	}
	return kind
}

// holdPartial keeps the metadata as the JSON of an object that has nothing else.
func (t *transformer) holdPartial(o *Object, p *metav1.PartialObjectMetadata) {
	held, managers := p.ObjectMeta, t.managers(p.GetAnnotations)
	held.ManagedFields = slices.DeleteFunc(slices.Clone(held.ManagedFields), func(f metav1.ManagedFieldsEntry) bool {
		return !managers.hold(f.Manager)
	})
	t.hold(o, "encoding metadata: it will be read from the server", func(e *encoder) ([]byte, int, int, error) {
		return e.partial(o.kind.Value(), held)
	})
}
