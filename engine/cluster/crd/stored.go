// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	internal "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	limits "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

// BreakingError says that a CRD would change so that objects may be invalid or lose fields.
type BreakingError struct {
	// Changes are the changes, with their places in the schema.
	Changes []string
	// Stored says how many objects there are, and how many of them do not fit.
	Stored string
	// Unfit reports whether a stored object does not fit.
	Unfit bool
	// Err says why the objects could not be tried; nil if they were.
	Err error
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
	head, stored := "the schema is stricter than the cluster's", e.Stored
	switch {
	case e.Err != nil:
		stored = "its objects were not tried: " + e.Err.Error()
	case e.Unfit:
		head = "the schema breaks what the cluster has"
	}
	return fmt.Sprintf("%s: %s%s (%s)", head, strings.Join(changes, "; "), more, stored)
}

// Cure says what may be done about it.
func (e *BreakingError) Cure() string {
	if e.Err == nil && !e.Unfit {
		return "--allow-breaking-schema accepts it"
	}
	return "change the objects first, keep in the schema what they have, or use --allow-breaking-schema"
}

// Unwrap returns why the objects could not be tried.
func (e *BreakingError) Unwrap() error { return e.Err }

// judge returns how a CRD would break objects. It returns nil if nothing is stored: then a CRD may change in any way.
func (i *installer) judge(ctx context.Context, there, wanted *unstructured.Unstructured) (*BreakingError, error) {
	live, err := typed(there)
	if err != nil {
		return nil, err
	}
	desired, err := typed(wanted)
	if err != nil {
		return nil, err
	}
	out, empty, said := &BreakingError{}, true, []string{}
	changes := breaking(live, desired)
	for _, c := range changes {
		out.Changes = append(out.Changes, c.found...)
	}
	for _, c := range changes {
		found, err := i.stored(ctx, live, c)
		if err != nil {
			out.Err = err
			return out, nil
		}
		empty, out.Unfit = empty && found.all == 0, out.Unfit || found.unfit > 0
		text := found.String()
		if len(changes) > 1 {
			text = c.version + ": " + text
		}
		said = append(said, text)
	}
	if empty {
		return nil, nil
	}
	out.Stored = strings.Join(said, "; ")
	return out, nil
}

// readAs returns the version in which objects are read to be tried by the schema of one: that one, or another if it is not served.
func readAs(live *apiextensions.CustomResourceDefinition, version string) (string, error) {
	if apihelpers.HasServedCRDVersion(live, version) {
		return version, nil
	}
	for _, other := range live.Spec.Versions {
		if other.Served {
			return other.Name, nil
		}
	}
	return "", errors.New("no version is served")
}

// stock counts stored objects, and those that a new schema would reject or prune, with the first of these.
type stock struct {
	all, unfit int
	first, why string
}

func (s stock) String() string {
	switch {
	case s.unfit == 0 && s.all == 1:
		return "the only stored object fits"
	case s.unfit == 0:
		return fmt.Sprintf("all %d stored objects fit", s.all)
	case s.unfit == 1:
		return fmt.Sprintf("1 of %d stored objects does not fit, %s: %s", s.all, s.first, s.why)
	}
	return fmt.Sprintf("%d of %d stored objects do not fit, such as %s: %s", s.unfit, s.all, s.first, s.why)
}

// stored tries the objects of a CRD by the schema that one version gets.
func (i *installer) stored(ctx context.Context, live *apiextensions.CustomResourceDefinition, c change) (out stock, err error) {
	fits, err := fitting(c.schema)
	if err != nil {
		return out, err
	}
	version, err := readAs(live, c.version)
	if err != nil {
		return out, err
	}
	client := i.dynamic.Resource(schema.GroupVersionResource{Group: live.Spec.Group, Version: version, Resource: live.Spec.Names.Plural})
	list := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	}))
	err = list.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		object, isObject := o.(*unstructured.Unstructured)
		if !isObject {
			return nil
		}
		out.all++
		why := fits(ctx, object.Object)
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

// fitting returns a function that says why an object would be invalid, or which fields it would lose. It changes the object. It does
// what the API server does with an object that is created, but for rules over oldSelf.
func fitting(props *apiextensions.JSONSchemaProps) (func(context.Context, map[string]any) string, error) {
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
	rules := cel.NewValidator(shape, true, limits.PerCallLimit)
	return func(ctx context.Context, object map[string]any) string {
		lost := pruning.PruneWithOptions(object, shape, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
		if len(lost) > 0 {
			return lost[0] + " would be lost"
		}
		defaulting.PruneNonNullableNullsWithoutDefaults(object, shape)
		defaulting.Default(object, shape)
		if faults := validation.ValidateCustomResource(nil, object, validator); len(faults) > 0 {
			return placeOf(faults[0]) + " would be invalid"
		}
		if faults := listtype.ValidateListSetsAndMaps(nil, shape, object); len(faults) > 0 {
			return placeOf(faults[0]) + " would be invalid"
		}
		if faults, _ := rules.Validate(ctx, nil, shape, object, nil, limits.RuntimeCELCostBudget); len(faults) > 0 {
			return placeOf(faults[0]) + " would be invalid: " + faults[0].Detail
		}
		return ""
	}, nil
}

// placeOf returns the path of a fault; the path of the whole object is nil.
func placeOf(fault *field.Error) string {
	var whole *field.Path
	if fault.Field == whole.String() {
		return "object"
	}
	return fault.Field
}
