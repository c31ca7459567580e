// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Create returns why an object cannot be created.
func (f *form) Create(ctx context.Context, object map[string]any) field.ErrorList {
	out := slices.Concat(
		f.created(object),
		byField(validation.ValidateCustomResource(nil, object, f.whole())),
		f.specReplicas(object), f.statusReplicas(object),
		objectmeta.Validate(ctx, nil, object, f.shape, false),
		listtype.ValidateListSetsAndMaps(nil, f.shape, object),
	)
	out = append(out, f.obeys(ctx, out, object, nil)...)
	if len(out) == 0 {
		cautions(ctx, object, nil)
	}
	return out
}

// Update returns why an object cannot take the place of a stored one. What was invalid and did not change passes.
func (f *form) Update(ctx context.Context, object, stored map[string]any) field.ErrorList {
	change := f.change(object, stored)
	out := slices.Concat(
		updated(object, stored, f.namespaced),
		byField(validation.ValidateCustomResourceUpdate(nil, object, stored, f.whole(), validation.WithRatcheting(change))),
		f.specReplicas(object), f.statusReplicas(object),
		objectmeta.Validate(ctx, nil, object, f.shape, false),
		f.lists(object, stored),
	)
	out = append(out, f.obeys(ctx, out, object, stored, cel.WithRatcheting(change))...)
	if len(out) == 0 {
		cautions(ctx, object, stored)
	}
	return out
}

// UpdatePart is Update after a write that changed the status alone.
func (f *form) UpdatePart(ctx context.Context, _ string, object, stored map[string]any) field.ErrorList {
	change := f.change(object, stored)
	out := updated(object, stored, f.namespaced)
	if status, found := object["status"]; found {
		out = append(out, byField(validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, stored["status"], f.status(),
			validation.WithRatcheting(change.Key("status"))))...)
	}
	out = slices.Concat(out, f.statusReplicas(object), f.lists(object, stored))
	return append(out, f.obeys(ctx, out, object, stored, cel.WithRatcheting(change))...)
}

// byField sorts errors by their fields. A real server has them in any order, but those of one field together, with
// errors that name no field.
func byField(errs field.ErrorList) field.ErrorList {
	at := map[*field.Error]string{}
	for i, err := range errs {
		if at[err] = err.Field; err.Field == nowhere && i > 0 {
			at[err] = at[errs[i-1]]
		}
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return cmp.Compare(at[a], at[b]) })
	return errs
}

// nowhere is the field of an error that names none.
const nowhere = "<nil>"

// change relates the fields of an object to those of the stored one.
func (f *form) change(object, stored map[string]any) *common.CorrelatedObject {
	return common.NewCorrelatedObject(object, stored, &model.Structural{Structural: f.shape})
}

// lists returns the duplicates in lists that are sets or maps, unless the stored object had some.
func (f *form) lists(object, stored map[string]any) field.ErrorList {
	out := listtype.ValidateListSetsAndMaps(nil, f.shape, object)
	if len(out) > 0 && len(listtype.ValidateListSetsAndMaps(nil, f.shape, stored)) > 0 {
		return nil
	}
	return out
}

// obeys returns which rules of CEL an object breaks. The errors found before can be such that rules cannot be checked.
// stored is nil for a new object.
func (f *form) obeys(ctx context.Context, found field.ErrorList, object, stored map[string]any, options ...cel.Option) field.ErrorList {
	rules := f.rules()
	if rules == nil {
		return nil
	}
	if slices.ContainsFunc(found, blocks) {
		return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")}
	}
	var old any
	if stored != nil {
		old = stored
	}
	out, _ := rules.Validate(ctx, nil, f.shape, object, old, celconfig.RuntimeCELCostBudget, options...)
	return out
}

// blocks reports whether rules cannot be checked because of an error: they count on types and sizes.
func blocks(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// specReplicas checks the wanted replicas of an object with a scale subresource.
func (f *form) specReplicas(object map[string]any) field.ErrorList {
	if f.scale == nil {
		return nil
	}
	return replicas(object, f.scale.SpecReplicasPath)
}

// statusReplicas checks the current replicas and the selector of an object with a scale subresource.
func (f *form) statusReplicas(object map[string]any) field.ErrorList {
	if f.scale == nil {
		return nil
	}
	out := replicas(object, f.scale.StatusReplicasPath)
	if path := f.scale.LabelSelectorPath; path != nil {
		if text, _, err := unstructured.NestedString(object, names(*path)...); err != nil {
			out = append(out, field.Invalid(field.NewPath(*path), text, err.Error()))
		}
	}
	return out
}

// replicas checks a number of replicas.
func replicas(object map[string]any, path string) field.ErrorList {
	n, _, err := unstructured.NestedInt64(object, names(path)...)
	why := ""
	switch {
	case err != nil:
		why = err.Error()
	case n < 0:
		why = "should be a non-negative integer"
	case n > math.MaxInt32:
		why = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(path), n, why)}
}

// names are the fields of a simple JSONPath.
func names(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
