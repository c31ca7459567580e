// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rule is what a schema has beside the fields.
type rule struct {
	// name says what is wrong with a name.
	name validation.ValidateNameFunc
	// domainless: finalizers need no domain. A real server forgets to check them in some groups.
	domainless bool
	// looseStatus is domainless for writes of the status alone.
	looseStatus bool
	// begin completes an object that is to be created, and keep one that takes the place of a stored one.
	begin func(next any)
	keep  func(next, old any)
	// allocate completes an object after begin or keep. If it finds errors, nothing else is checked. It may be nil.
	allocate func(f *findings, next, old any)
	// fill sets defaults.
	fill func(any)
	// decoded sets defaults once, when an object is decoded. It may be nil.
	decoded func(any)
	// check says what is wrong with an object; old is nil for a new one.
	check func(f *findings, next, old any)
	// warn says what is doubtful about a valid object; old is nil for a new one. It may be nil.
	warn func(next, old any) []string
	// late: metadata are checked once nothing else is wrong.
	late bool
	// renamed: the name, and the prefix of a generated one, are checked again in an update.
	renamed bool
	// names is what the name of an object is used for that takes labels of DNS alone; empty if that is nothing.
	names string
	// part is check after a write of a part of the spec by a subresource.
	part func(f *findings, part string, next, old any)
	// status is check after a write of the status. It may be nil.
	status func(f *findings, next, old any)
	// apart: the defaults of the spec, of the status and of the metadata do not depend on each other, and keep is about the spec alone.
	apart bool
}

// of returns the rule of a kind whose Go type is T. Any function may be nil.
type of[T any] struct {
	name        validation.ValidateNameFunc
	domainless  bool
	looseStatus bool
	begin       func(next *T)
	keep        func(next, old *T)
	allocate    func(f *findings, next, old *T)
	fill        func(*T)
	decoded     func(*T)
	check       func(f *findings, next, old *T)
	warn        func(next, old *T) []string
	part        func(f *findings, part string, next, old *T)
	status      func(f *findings, next, old *T)
	apart       bool
	names       string
	renamed     bool
	late        bool
}

// plain returns the rule without the type.
func (r of[T]) plain() rule {
	out := rule{
		name: r.name, domainless: r.domainless, looseStatus: r.domainless || r.looseStatus, names: r.names, renamed: r.renamed, late: r.late,
		fill: func(any) {}, check: func(*findings, any, any) {}, apart: r.apart,
	}
	if r.name == nil {
		out.name = validation.NameIsDNSSubdomain
	}
	if r.begin != nil {
		out.begin = func(next any) { r.begin(next.(*T)) }
	}
	if r.keep != nil {
		out.keep = func(next, old any) { r.keep(next.(*T), old.(*T)) }
	}
	if r.allocate != nil {
		out.allocate = func(f *findings, next, old any) {
			before, _ := old.(*T)
			r.allocate(f, next.(*T), before)
		}
	}
	if r.fill != nil {
		out.fill = func(o any) { r.fill(o.(*T)) }
	}
	if r.decoded != nil {
		out.decoded = func(o any) { r.decoded(o.(*T)) }
	}
	if r.warn != nil {
		out.warn = func(next, old any) []string {
			before, _ := old.(*T)
			return r.warn(next.(*T), before)
		}
	}
	if r.part != nil {
		out.part = func(f *findings, part string, next, old any) { r.part(f, part, next.(*T), old.(*T)) }
	}
	if r.status != nil {
		out.status = func(f *findings, next, old any) { r.status(f, next.(*T), old.(*T)) }
	}
	if r.check != nil {
		out.check = func(f *findings, next, old any) {
			before, _ := old.(*T)
			r.check(f, next.(*T), before)
		}
	}
	return out
}

// anyName accepts all names.
func anyName(string, bool) []string { return nil }

// plainFinalizers are those without a domain.
func plainFinalizers() []string {
	return []string{string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
}

// validateMetadata returns what is wrong with metadata. The server has checked the namespace.
func validateMetadata(m metav1.Object, name validation.ValidateNameFunc, domainless bool) field.ErrorList {
	path := field.NewPath("metadata")
	out := validation.ValidateObjectMetaAccessor(m, m.GetNamespace() != "", name, path)
	for i, name := range m.GetFinalizers() {
		if !domainless && !strings.Contains(name, "/") && !slices.Contains(plainFinalizers(), name) {
			out = append(out, field.Invalid(path.Child("finalizers").Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return out
}

// spec is the path of a spec.
func spec() *field.Path { return field.NewPath("spec") }

// initial sets a value that is absent.
func initial[T any](at **T, value T) {
	if *at == nil {
		*at = &value
	}
}

// orElse sets a text that is empty.
func orElse[T ~string](at *T, value T) {
	if *at == "" {
		*at = value
	}
}
