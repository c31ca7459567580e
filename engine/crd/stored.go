// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"context"
	"fmt"
	"strings"

	internal "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

// BreakingError says that a CRD would change so that objects may be invalid or lose fields.
type BreakingError struct {
	// Changes are the changes, with their places in the schema.
	Changes []string
	// Stored says how many objects there are, and how many of them do not fit.
	Stored string
}

// mostChanges is how many changes the text has.
const mostChanges = 10

// Error names the changes and the objects.
func (e *BreakingError) Error() string {
	changes := e.Changes[:min(len(e.Changes), mostChanges)]
	more := ""
	if n := len(e.Changes) - len(changes); n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return fmt.Sprintf("the schema breaks what the cluster has: %s%s (%s)", strings.Join(changes, "; "), more, e.Stored)
}

// judge returns a [*BreakingError] if a CRD would break objects. A CRD without objects may change in any way.
func (i *installer) judge(ctx context.Context, there, wanted *unstructured.Unstructured) error {
	live, err := typed(there)
	if err != nil {
		return err
	}
	desired, err := typed(wanted)
	if err != nil {
		return err
	}
	changes := breaking(live, desired)
	if len(changes) == 0 {
		return nil
	}
	version, props := served(live, desired)
	if props == nil {
		return nil
	}
	found, err := i.stored(ctx, schema.GroupVersionResource{Group: live.Spec.Group, Version: version, Resource: live.Spec.Names.Plural}, props)
	if err != nil {
		return &BreakingError{changes, "its objects cannot be listed: " + err.Error()}
	}
	if found.all == 0 {
		return nil
	}
	return &BreakingError{changes, found.String()}
}

// served returns the first version that is served now and later, and the schema that it gets.
func served(live, desired *apiextensions.CustomResourceDefinition) (string, *apiextensions.JSONSchemaProps) {
	for _, was := range live.Spec.Versions {
		for _, is := range desired.Spec.Versions {
			if was.Name == is.Name && was.Served && is.Schema != nil && is.Schema.OpenAPIV3Schema != nil {
				return was.Name, is.Schema.OpenAPIV3Schema
			}
		}
	}
	return "", nil
}

// stock counts stored objects, and those that a new schema would reject or prune, with the first of these.
type stock struct {
	all, unfit int
	first, why string
}

func (s stock) String() string {
	switch s.unfit {
	case 0:
		return fmt.Sprintf("none of %d stored objects is affected", s.all)
	case 1:
		return fmt.Sprintf("1 of %d stored objects does not fit, %s: %s", s.all, s.first, s.why)
	}
	return fmt.Sprintf("%d of %d stored objects do not fit, such as %s: %s", s.unfit, s.all, s.first, s.why)
}

// stored holds the objects of a resource against a schema.
func (i *installer) stored(ctx context.Context, gvr schema.GroupVersionResource, props *apiextensions.JSONSchemaProps) (out stock, err error) {
	fits, err := fitting(props)
	if err != nil {
		return out, err
	}
	list := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return i.dynamic.Resource(gvr).List(ctx, options)
	}))
	err = list.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		object, is := o.(*unstructured.Unstructured)
		if !is {
			return nil
		}
		out.all++
		why := fits(object.Object)
		if why == "" {
			return nil
		}
		if out.unfit++; out.unfit == 1 {
			out.first, out.why = cache.MetaObjectToName(object).String(), why
		}
		return nil
	})
	return out, err
}

// fitting returns a function that says why an object would be invalid, or which fields it would lose. It changes the object.
func fitting(props *apiextensions.JSONSchemaProps) (func(map[string]any) string, error) {
	inner := &internal.JSONSchemaProps{}
	if err := apiextensions.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, inner, nil); err != nil {
		return nil, fmt.Errorf("reading schema: %w", err)
	}
	validator, _, err := validation.NewSchemaValidator(inner)
	if err != nil {
		return nil, fmt.Errorf("reading schema: %w", err)
	}
	shape, err := structural.NewStructural(inner)
	if err != nil {
		return nil, fmt.Errorf("reading schema: %w", err)
	}
	return func(object map[string]any) string {
		lost := pruning.PruneWithOptions(object, shape, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
		if len(lost) > 0 {
			return lost[0] + " would be lost"
		}
		defaulting.PruneNonNullableNullsWithoutDefaults(object, shape)
		defaulting.Default(object, shape)
		if faults := validation.ValidateCustomResource(nil, object, validator); len(faults) > 0 {
			return faults[0].Field + " would be invalid"
		}
		return ""
	}, nil
}
