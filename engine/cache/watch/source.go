// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// Source selects objects to watch, and says how the cache holds them. Equal sources share one informer.
type Source struct {
	// GVR is the resource. Required.
	GVR schema.GroupVersionResource
	// Namespace limits the source to one namespace. Empty means all, and is required for
	// resources without namespaces.
	Namespace string
	// LabelSelector and FieldSelector, in kubectl's form, are evaluated by the server. Objects that they do not select
	// do not exist here. Empty means everything.
	LabelSelector, FieldSelector string
	// Form says how the objects are held.
	cached.Form
}

// String names the source for people, as in "foos.v1.example.com in default".
func (s Source) String() string {
	name := dsl.ResourceName{Resource: s.GVR.Resource, Version: s.GVR.Version, Group: s.GVR.Group}.String()
	if s.Namespace != "" {
		name += " in " + s.Namespace
	}
	return name
}

// selects puts the selectors into a request.
func (s Source) selects(opts *metav1.ListOptions) {
	opts.LabelSelector, opts.FieldSelector = s.LabelSelector, s.FieldSelector
}

// scope decides which objects belong to a source.
type scope struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	// blind is true if the field selector has fields that only the server can evaluate.
	blind bool
}

func newScope(s Source) (scope, error) {
	byLabel, err := labels.Parse(s.LabelSelector)
	if err != nil {
		return scope{}, fmt.Errorf("reading label selector: %w", err)
	}
	byField, err := fields.ParseSelector(s.FieldSelector)
	if err != nil {
		return scope{}, fmt.Errorf("reading field selector: %w", err)
	}
	known := identity(cache.ObjectName{})
	blind := slices.ContainsFunc(byField.Requirements(), func(r fields.Requirement) bool {
		return !known.Has(r.Field)
	})
	return scope{namespace: s.Namespace, labels: byLabel, fields: byField, blind: blind}, nil
}

func (s scope) selects(key cache.ObjectName, set map[string]string) bool {
	if s.blind || (s.namespace != "" && s.namespace != key.Namespace) {
		return false
	}
	return s.fields.Matches(identity(key)) && s.labels.Matches(labels.Set(set))
}

// identity holds the fields that every resource can be selected by.
func identity(key cache.ObjectName) fields.Set {
	return fields.Set{"metadata.name": key.Name, "metadata.namespace": key.Namespace}
}
