// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"encoding/json"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// NewTransformer returns a transformer for a source, whose objects are compressed by the press. The group and version
// are those of the watch. NewTransformer fails if Form.Keep is invalid.
func (p *Compressor) NewTransformer(form Form, gv schema.GroupVersion, log logr.Logger) (*Transformer, error) {
	keep, err := parseKeep(form.Keep)
	if err != nil {
		return nil, err
	}
	t := &Transformer{cutter: cutter{form: form, keep: keep, notes: parseNotes(form.Notes), press: p}, apiVersion: gv.String(), log: log}
	t.buffers.New = func() any { return new(buffer) }
	return t, nil
}

// Transformer converts objects to those of a cache. It is safe for use by several goroutines.
type Transformer struct {
	cutter
	apiVersion string
	log        logr.Logger
	buffers    sync.Pool
}

// buffer is working memory that is reused for each object.
type buffer struct {
	encoder
	cut, pressed []byte
	marked       bool
}

// Convert converts the JSON of an object, which must be regular; it keeps none of it. It returns nil if that is no stored
// object, such as a Status or a bookmark.
func (t *Transformer) Convert(json []byte) *Object {
	b := t.buffers.Get().(*buffer)
	defer t.buffers.Put(b)
	o := t.cut(json, b)
	if !o.stored(b) {
		return nil
	}
	return t.held(o, b)
}

// Transform is an informer's transform: it converts an object from a client, decoded or its metadata alone, to an
// *[Object], and returns that of a [Carrier]. It never fails, because an error there would lose the event: an object
// that cannot be encoded is logged and held as in the live profile. It returns other values, and its own results, as
// they are: client-go calls it twice for each object of a streamed list.
func (t *Transformer) Transform(in any) (any, error) {
	b := t.buffers.Get().(*buffer)
	defer t.buffers.Put(b)
	switch obj := in.(type) {
	case *unstructured.Unstructured:
		return t.unstructured(b, obj), nil
	case *metav1.PartialObjectMetadata:
		return t.partial(b, obj), nil
	default:
		return in, nil
	}
}

func (t *Transformer) unstructured(b *buffer, u *unstructured.Unstructured) *Object {
	if o, ok := u.Object[carried].(*Object); ok {
		return o
	}
	raw, err := b.encode(u.Object)
	if err == nil {
		return t.object(raw, b)
	}
	t.failed(err, u)
	raw, err = b.encode(map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": u.Object["metadata"]})
	if err != nil {
		return Named(u.GetNamespace(), u.GetName())
	}
	live := cutter{form: Form{Profile: dsl.CacheLive}}
	return live.object(raw, b)
}

// partial converts an object whose metadata alone was sent. Its kind is then PartialObjectMetadata.
func (t *Transformer) partial(b *buffer, p *metav1.PartialObjectMetadata) *Object {
	kind := t.form.Kind
	if kind == "" && p.GroupVersionKind().Group != metav1.GroupName {
		kind = p.Kind
	}
	raw, err := json.Marshal(metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: t.apiVersion, Kind: kind}, ObjectMeta: p.ObjectMeta})
	if err != nil {
		t.failed(err, p)
		return Named(p.Namespace, p.Name)
	}
	return t.object(raw, b)
}

func (t *Transformer) failed(err error, o metav1.Object) {
	t.log.Error(err, "encoding object: it will be read from the server", "namespace", o.GetNamespace(), "name", o.GetName())
}
