// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// checkRuleTexts checks the rules of a schema as texts.
func checkRuleTexts(s *apiextensions.JSONSchemaProps, path *field.Path) (out field.ErrorList) {
	lines := func(text string) bool { return strings.ContainsAny(text, "\r\n") }
	blank := func(text string) bool { return text != "" && strings.TrimSpace(text) == "" }
	for i, r := range s.XValidations {
		at := path.Child("x-kubernetes-validations").Index(i)
		rule, message := strings.TrimSpace(r.Rule), strings.TrimSpace(r.Message)
		switch {
		case rule == "":
			out = append(out, field.Required(at.Child("rule"), "rule is not specified"))
		case blank(r.Message):
			out = append(out, field.Invalid(at.Child("message"), r.Message, "must be non-empty if specified"))
		case lines(message):
			out = append(out, field.Invalid(at.Child("message"), r.Message, "must not contain line breaks"))
		case lines(rule) && message == "":
			out = append(out, field.Required(at.Child("message"), "message must be specified if rule contains line breaks"))
		}
		if blank(r.MessageExpression) {
			out = append(out, field.Required(at.Child("messageExpression"), "messageExpression must be non-empty if specified"))
		}
		reasons := []string{"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"}
		if r.Reason != nil && !slices.Contains(reasons, string(*r.Reason)) {
			out = append(out, field.NotSupported(at.Child("reason"), *r.Reason, reasons))
		}
		if blank(r.FieldPath) {
			out = append(out, field.Invalid(at.Child("fieldPath"), r.FieldPath, "must be non-empty if specified"))
		}
		if lines(r.FieldPath) {
			out = append(out, field.Invalid(at.Child("fieldPath"), r.FieldPath, "must not contain line breaks"))
		}
		if r.FieldPath != "" && !leads(s, r.FieldPath) {
			out = append(out, field.Invalid(at.Child("fieldPath"), r.FieldPath, "must be a valid path"))
		}
	}
	return out
}

// leads reports whether a path leads to a field of a schema. It is not known of a schema that is not structural.
func leads(s *apiextensions.JSONSchemaProps, path string) bool {
	shape, err := structural.NewStructural(s)
	if err != nil {
		return true
	}
	_, _, err = cel.ValidFieldPath(path, shape)
	return err == nil
}

// ruled is a schema in which there can be rules of CEL. A nil one has none.
type ruled struct {
	parent *ruled
	schema *apiextensions.JSONSchemaProps
	// inside: it or one above it has rules.
	inside bool
	// count is how often it can be in an object; nil means that there is no limit.
	count *uint64
	total *costs
	// types are made on demand. child finds them in those of the parent.
	types *types
	child func(parent *types) *types
}

// types are a schema as CEL sees it.
type types struct {
	shape *structural.Structural
	decl  *apiservercel.DeclType
}

// newRuled returns the root of a schema.
func newRuled(s *apiextensions.JSONSchemaProps) *ruled {
	one := uint64(1)
	return &ruled{schema: s, inside: len(s.XValidations) > 0, count: &one, total: &costs{}}
}

// property is the schema of a property.
func (r *ruled) property(s *apiextensions.JSONSchemaProps, name string) *ruled {
	return r.below(s, func(parent *types) *types {
		shape := parent.shape.Properties[name]
		escaped, can := apiservercel.Escape(name)
		if declared := parent.decl.Fields[escaped]; can && declared != nil {
			return &types{&shape, declared.Type}
		}
		return nil
	})
}

// items is the schema of the elements of a list.
func (r *ruled) items(s *apiextensions.JSONSchemaProps) *ruled {
	return r.below(s, func(parent *types) *types {
		if parent.shape.Items == nil {
			return nil
		}
		return &types{parent.shape.Items, parent.decl.ElemType}
	})
}

// values is the schema of the values of a map.
func (r *ruled) values(s *apiextensions.JSONSchemaProps) *ruled {
	return r.below(s, func(parent *types) *types {
		if parent.shape.AdditionalProperties == nil {
			return nil
		}
		return &types{parent.shape.AdditionalProperties.Structural, parent.decl.ElemType}
	})
}

func (r *ruled) below(s *apiextensions.JSONSchemaProps, child func(*types) *types) *ruled {
	if r == nil || s == nil {
		return nil
	}
	out := &ruled{parent: r, schema: s, inside: r.inside || len(s.XValidations) > 0, total: r.total, child: child}
	if most := elements(r.schema); r.count != nil && most != nil {
		n := times(*r.count, *most)
		out.count = &n
	}
	return out
}

// seen returns the types for the rules of a schema: those in the types of the parent, or new ones.
func (r *ruled) seen() (*types, error) {
	if r.types != nil {
		return r.types, nil
	}
	if r.parent != nil && r.parent.inside {
		parent, err := r.parent.seen()
		if err != nil {
			return nil, err
		}
		if r.types = r.child(parent); r.types != nil {
			return r.types, nil
		}
	}
	shape, err := structural.NewStructural(r.schema)
	if err != nil {
		return nil, err
	}
	decl := model.SchemaDeclType(shape, r.parent == nil || r.schema.XEmbeddedResource)
	if decl == nil {
		return nil, fmt.Errorf("unable to convert structural schema to CEL declarations")
	}
	r.types = &types{shape, decl}
	return r.types, nil
}

// compile returns what is wrong with the rules of a schema, and adds their costs.
func (r *ruled) compile(s *apiextensions.JSONSchemaProps, path *field.Path, at place) (out field.ErrorList) {
	path = path.Child("x-kubernetes-validations")
	seen, err := r.seen()
	if err != nil {
		return field.ErrorList{field.InternalError(path, fmt.Errorf("internal error: failed to construct type information for x-kubernetes-validations rules: %w", err))}
	}
	results, err := cel.Compile(seen.shape, seen.decl, celconfig.PerCallLimit,
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader())
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	for i, result := range results {
		rule, at := s.XValidations[i], place{apart: at.apart}
		out = append(out, r.compiled(&result, &rule, path.Index(i), at)...)
	}
	return out
}

// compiled returns what is wrong with a compiled rule, and adds its costs.
func (r *ruled) compiled(result *cel.CompilationResult, rule *apiextensions.ValidationRule, path *field.Path, at place) (out field.ErrorList) {
	count := result.MaxCardinality
	if r.count != nil {
		count = *r.count
	}
	text, message := path.Child("rule"), path.Child("messageExpression")
	out = r.total.add(text, "estimated rule cost", times(result.MaxCost, count))
	if wrong := result.Error; wrong != nil && wrong.Type == apiservercel.ErrorTypeRequired {
		out = append(out, field.Required(text, wrong.Detail))
	} else if wrong != nil {
		out = append(out, field.Invalid(text, *rule, wrong.Detail))
	}
	if wrong := result.MessageExpressionError; wrong != nil {
		out = append(out, field.Invalid(message, *rule, wrong.Detail))
	} else if result.MessageExpression != nil {
		out = append(out, r.total.add(message, "estimated messageExpression cost", result.MessageExpressionMaxCost)...)
	}
	switch {
	case result.UsesOldSelf && at.apart != nil:
		out = append(out, field.Invalid(text, rule.Rule, fmt.Sprintf("oldSelf cannot be used on the uncorrelatable portion of the schema within %v", at.apart)))
	case !result.UsesOldSelf && rule.OptionalOldSelf != nil:
		out = append(out, field.Invalid(path.Child("optionalOldSelf"), *rule.OptionalOldSelf, "may not be set if oldSelf is not used in rule"))
	}
	return out
}
