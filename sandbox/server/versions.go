// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// view is how one of several versions shows objects, which can be stored in another version or before the schemas changed.
// It is a copy of what the server knew when a request came, so that lists and watches need no lock. The zero value shows
// objects as they are stored.
type view struct {
	group, version string
	schemas        map[string]Schema
	// reformed is the version of the server when the schemas changed last.
	reformed int64
	// webhook converts objects into the version; nil if the server does so by itself.
	webhook *converter
}

// viewIn returns the view of a version.
func (t *table) viewIn(version string) view {
	return view{group: t.group, version: version, schemas: t.schemas, reformed: t.reformed, webhook: t.webhook}
}

// as reports whether an object is shown as it is stored: in an API version, at a version of the server.
func (v view) as(apiVersion string, at int64) bool {
	return len(v.schemas) == 0 || at > v.reformed && apiVersion == v.group+"/"+v.version
}

// show returns an object as the version shows it. Like a real server, it first brings what was stored before the
// schemas changed into the form of the version in which it is stored, and then removes what this version lacks.
func (v view) show(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o == nil || o.GetAPIVersion() == "" {
		return o // nothing, or a bookmark
	}
	at, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		at = math.MaxInt64 // an object of a dry run is not stored
	}
	if v.as(o.GetAPIVersion(), at) {
		return o
	}
	o = o.DeepCopy()
	if form := v.schemas[strings.TrimPrefix(o.GetAPIVersion(), v.group+"/")]; form != nil && at <= v.reformed {
		prune(form, o)
		form.Default(o.Object)
	}
	return v.converted(o)
}

// converted changes the version of an object. A built-in kind has its own conversion, and a CRD removes what the version lacks, or
// has a webhook. If that fails the object stays as it is: requests that have to fail then have called it before.
func (v view) converted(o *unstructured.Unstructured) *unstructured.Unstructured {
	if v.converts(o.GetAPIVersion()) {
		if out, err := v.convertObject(o); err == nil {
			return out
		}
		return o
	}
	if form, is := v.schemas[strings.TrimPrefix(o.GetAPIVersion(), v.group+"/")].(Versioned); is {
		form.Convert(o.Object, v.version)
		return o
	}
	if apiVersion := v.group + "/" + v.version; o.GetAPIVersion() != apiVersion {
		o.SetAPIVersion(apiVersion)
		if form := v.schemas[v.version]; form != nil {
			prune(form, o)
		}
	}
	return o
}

// prune removes what a schema lacks from a stored object, whose metadata was checked before.
func prune(form Schema, o *unstructured.Unstructured) { _, _ = form.Prune(o.Object) }

// inStorage returns an object in the version in which it is stored, and how to show it again.
func (t *table) inStorage(o *unstructured.Unstructured) (stored *unstructured.Unstructured, again view) {
	version := strings.TrimPrefix(o.GetAPIVersion(), t.group+"/")
	if len(t.schemas) == 0 || t.storage == "" || version == t.storage {
		return o, view{}
	}
	stored = t.viewIn(t.storage).converted(o.DeepCopy())
	if form := t.schemas[t.storage]; form != nil {
		form.Default(stored.Object) // a real server does so whenever it reads it
	}
	return stored, t.viewIn(version)
}
