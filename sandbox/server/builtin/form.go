// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"cmp"
	"context"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// form is the schema of a kind: its Go type and its rule.
type form struct {
	kind  schema.GroupVersionKind
	rule  rule
	known *enumerations
}

// Decode brings an object into the form of its kind. See [server.Typed].
func (f *form) Decode(object, stored map[string]any) (unknown []string, err error) {
	managed, same := server.SetAside(object), f.takeSame(object, stored)
	into, unknown, err := f.decode(object)
	if err != nil {
		maps.Copy(object, same)
		return nil, err
	}
	if f.rule.fill(into); f.rule.decoded != nil {
		f.rule.decoded(into)
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		return nil, err
	}
	maps.Copy(out, same)
	server.Replace(object, out, managed)
	return unknown, nil
}

// takeSame takes the spec and the status out of an object, and returns them, if they are those of the stored one: they got
// their form before that was stored.
func (f *form) takeSame(object, stored map[string]any) (same map[string]any) {
	if !f.rule.apart {
		return nil
	}
	for _, name := range []string{"spec", "status"} {
		if value, found := object[name]; found && reflect.DeepEqual(value, stored[name]) {
			if same == nil {
				same = map[string]any{}
			}
			same[name] = value
			delete(object, name)
		}
	}
	return same
}

// decode returns the typed form of an object, and the paths of unknown fields.
func (f *form) decode(object map[string]any) (into runtime.Object, unknown []string, err error) {
	if into, err = scheme.Scheme.New(f.kind); err != nil {
		return nil, nil, err
	}
	data, err := plain.AppendJSON(nil, object)
	if err != nil {
		return nil, nil, err
	}
	strict, err := kjson.UnmarshalStrict(data, into)
	return into, server.UnknownFields(strict), err
}

// Begin sets what a real server sets in a new object. See [server.Typed].
func (f *form) Begin(object map[string]any) error {
	if f.rule.begin == nil {
		return nil
	}
	managed, into := server.SetAside(object), f.typed(object)
	f.rule.begin(into)
	return cmp.Or(f.allocate(into, nil), replace(object, into, managed))
}

// Keep sets what a real server keeps of a stored object. See [server.Typed].
func (f *form) Keep(object, stored map[string]any) error {
	if f.rule.keep == nil || f.rule.apart && reflect.DeepEqual(object["spec"], stored["spec"]) {
		return nil
	}
	managed, into, old := server.SetAside(object), f.typed(object), f.typed(stored)
	f.rule.keep(into, old)
	return cmp.Or(f.allocate(into, old), replace(object, into, managed))
}

// allocate returns what a real server refuses before it checks an object; old is nil for a new one.
func (f *form) allocate(next, old runtime.Object) error {
	if f.rule.allocate == nil {
		return nil
	}
	found := &findings{}
	f.rule.allocate(found, next, old)
	m, err := meta.Accessor(next)
	if err != nil || len(found.list) == 0 {
		return err
	}
	return apierrors.NewInvalid(f.kind.GroupKind(), m.GetName(), found.list)
}

// Convert brings an object into another version of its kind. See [server.Versioned].
func (f *form) Convert(object map[string]any, version string) {
	from, err := scheme.Scheme.New(f.kind)
	if version == f.kind.Version || err != nil {
		return
	}
	managed := server.SetAside(object)
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object, from)
	if err := replace(object, otherVersion(from), managed); err != nil {
		panic("builtin: " + err.Error()) // not reached: its own types can be converted
	}
}

// replace gives an object the content of a typed one, but keeps its managed fields.
func replace(object map[string]any, by runtime.Object, managed any) error {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(by)
	if err == nil {
		server.Replace(object, out, managed)
	}
	return err
}

// typed returns the typed form of an object with its defaults. Fields of a wrong type, which a server without schemas
// has stored, are left out.
func (f *form) typed(object map[string]any) runtime.Object {
	into, err := scheme.Scheme.New(f.kind)
	if err != nil {
		panic("builtin: " + err.Error()) // not reached: the scheme has the kind
	}
	object = maps.Clone(object)
	server.SetAside(object)
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object, into)
	f.rule.fill(into)
	return into
}

// Prune removes nothing: Decode has done so.
func (f *form) Prune(map[string]any) ([]string, error) { return nil, nil }

// Default sets nothing: Decode has done so.
func (f *form) Default(map[string]any) {}

// Create returns why an object cannot be created.
func (f *form) Create(ctx context.Context, object map[string]any) field.ErrorList {
	next, found := f.typed(object), &findings{}
	if !f.rule.late {
		f.metadata(found, next, true)
	}
	f.rule.check(found, next, nil)
	if f.rule.late && len(found.all()) == 0 {
		f.metadata(found, next, true)
	}
	errs := found.all()
	if len(errs) == 0 {
		f.rule.addWarnings(ctx, next, nil)
	}
	return errs
}

// Update returns why an object cannot take the place of a stored one.
func (f *form) Update(ctx context.Context, object, stored map[string]any) field.ErrorList {
	next, old, found := f.typed(object), f.typed(stored), &findings{}
	f.metadata(found, next, false)
	f.rule.check(found, next, old)
	errs := found.all()
	if len(errs) == 0 {
		f.rule.addWarnings(ctx, next, old)
	}
	return errs
}

// UpdatePart returns why an object cannot be stored after a write that changed a part of it alone. When that is the status, the
// spec was checked before.
func (f *form) UpdatePart(_ context.Context, part string, object, stored map[string]any) field.ErrorList {
	if part != "status" && f.rule.part != nil {
		next, found := f.typed(object), &findings{}
		f.metadata(found, next, false)
		f.rule.part(found, part, next, f.typed(stored))
		return found.all()
	}
	next, found := &metav1.ObjectMeta{}, &findings{}
	fields, _ := object["metadata"].(map[string]any)
	whole := map[string]any{"metadata": fields}
	server.SetAside(whole)
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(whole["metadata"].(map[string]any), next) // Decode has found what is wrong
	f.metadataOf(found, next, false, f.rule.looseStatus)
	if part == "status" && f.rule.status != nil {
		f.rule.status(found, f.statusOf(object), f.statusOf(stored))
	}
	return found.all()
}

// statusOf returns the typed form of an object that has its status alone.
func (f *form) statusOf(object map[string]any) runtime.Object {
	into, err := scheme.Scheme.New(f.kind)
	if err != nil {
		panic("builtin: " + err.Error()) // not reached: the scheme has the kind
	}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"status": object["status"]}, into) // Decode has found what is wrong
	return into
}

// Converter returns nil: the server knows the fields of built-in kinds.
func (f *form) Converter() managedfields.TypeConverter { return nil }

// metadata checks the metadata of an object. A stored name is not checked again.
func (f *form) metadata(found *findings, o any, fresh bool) {
	f.metadataOf(found, o, fresh, f.rule.domainless)
}

// metadataOf checks metadata. Finalizers may need no domain.
func (f *form) metadataOf(found *findings, o any, fresh, domainless bool) {
	m, err := meta.Accessor(o)
	if err != nil {
		return // a kind without metadata has none to check
	}
	name := f.rule.name
	if !fresh && !f.rule.renamed {
		name = anyName
	}
	found.add(validateMetadata(m, name, domainless))
}
