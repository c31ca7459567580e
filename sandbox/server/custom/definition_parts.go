// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// parts are what a version has, or all versions together.
type parts struct {
	schema       *apiextensions.CustomResourceValidation
	subresources *apiextensions.CustomResourceSubresources
	// status: there is a status subresource.
	status     bool
	columns    []apiextensions.CustomResourceColumnDefinition
	selectable []apiextensions.SelectableField
}

// checkParts checks parts below a path. The schema has another name there than in a version.
func checkParts(p parts, path *field.Path, schema string) field.ErrorList {
	var out field.ErrorList
	if p.schema != nil {
		out = checkSchema(p.schema.OpenAPIV3Schema, path.Child(schema), p.status)
	}
	if p.subresources != nil && p.subresources.Scale != nil {
		out = append(out, checkScale(p.subresources.Scale, path.Child("subresources"))...)
	}
	for i := range p.columns {
		out = append(out, checkColumn(&p.columns[i], path.Child("additionalPrinterColumns").Index(i))...)
	}
	if len(p.selectable) == 0 || p.schema == nil || p.schema.OpenAPIV3Schema == nil {
		return out
	}
	shape, err := structural.NewStructural(p.schema.OpenAPIV3Schema)
	if err != nil {
		out = append(out, field.Invalid(path.Child("schema.openAPIV3Schema"), "", err.Error()))
	}
	return append(out, checkSelectable(p.selectable, shape, path.Child("selectableFields"))...)
}

// simple checks a JSONPath of field names.
func simple(text string, path *field.Path) field.ErrorList {
	if text != "" && text[0] != '.' {
		return field.ErrorList{field.Invalid(path, text, "must be a simple json path starting with .")}
	}
	return nil
}

func checkScale(scale *apiextensions.CustomResourceSubresourceScale, path *field.Path) (out field.ErrorList) {
	for _, each := range []struct{ field, text, below string }{
		{"specReplicasPath", scale.SpecReplicasPath, "spec"}, {"statusReplicasPath", scale.StatusReplicasPath, "status"},
	} {
		at := path.Child("scale." + each.field)
		switch wrong := simple(each.text, at); {
		case each.text == "":
			out = append(out, field.Required(at, ""))
		case len(wrong) > 0:
			out = append(out, wrong...)
		case !strings.HasPrefix(each.text, "."+each.below+"."):
			out = append(out, field.Invalid(at, each.text, "should be a json path under ."+each.below))
		}
	}
	if scale.LabelSelectorPath == nil || *scale.LabelSelectorPath == "" {
		return out
	}
	text, at := *scale.LabelSelectorPath, path.Child("scale.labelSelectorPath")
	if wrong := simple(text, at); len(wrong) > 0 {
		return append(out, wrong...)
	}
	if !strings.HasPrefix(text, ".spec.") && !strings.HasPrefix(text, ".status.") {
		out = append(out, field.Invalid(at, scale.LabelSelectorPath, "should be a json path under either .spec or .status"))
	}
	return out
}

func checkColumn(c *apiextensions.CustomResourceColumnDefinition, path *field.Path) (out field.ErrorList) {
	types := []string{"boolean", "date", "integer", "number", "string"}
	formats := []string{"byte", "date", "date-time", "double", "float", "int32", "int64", "password"}
	if c.Name == "" {
		out = append(out, field.Required(path.Child("name"), ""))
	}
	if why := "must be one of " + strings.Join(types, ","); c.Type == "" {
		out = append(out, field.Required(path.Child("type"), why))
	} else if !slices.Contains(types, c.Type) {
		out = append(out, field.Invalid(path.Child("type"), c.Type, why))
	}
	if c.Format != "" && !slices.Contains(formats, c.Format) {
		out = append(out, field.Invalid(path.Child("format"), c.Format, "must be one of "+strings.Join(formats, ",")))
	}
	if c.JSONPath == "" {
		return append(out, field.Required(path.Child("JSONPath"), ""))
	}
	return append(out, simple(c.JSONPath, path.Child("JSONPath"))...)
}

// mostSelectable is how many fields of a version can be selected by.
const mostSelectable = 8

func checkSelectable(list []apiextensions.SelectableField, shape *structural.Structural, path *field.Path) (out field.ErrorList) {
	seen := map[string]bool{}
	for i, each := range list {
		at := path.Index(i).Child("jsonPath")
		if each.JSONPath == "" {
			out = append(out, field.Required(at, ""))
			continue
		}
		found, below, err := cel.ValidFieldPath(each.JSONPath, shape, cel.WithFieldPathAllowArrayNotation(false))
		if err != nil {
			out = append(out, field.Invalid(at, each.JSONPath, fmt.Sprintf("is an invalid path: %v", err)))
			continue
		}
		if found.Root().String() == "metadata" {
			out = append(out, field.Invalid(at, each.JSONPath, "must not point to fields in metadata"))
		}
		if below == nil || !slices.Contains([]string{"string", "boolean", "integer"}, below.Type) {
			out = append(out, field.Invalid(at, each.JSONPath, "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."))
		}
		if seen[found.String()] {
			out = append(out, field.Duplicate(at, each.JSONPath))
		}
		seen[found.String()] = true
	}
	if len(seen) > mostSelectable {
		out = append(out, field.TooMany(path, len(seen), mostSelectable))
	}
	return out
}

// longestWarning is the longest warning of a deprecated version in bytes.
const longestWarning = 256

func checkWarning(deprecated bool, warning *string, path *field.Path) (out field.ErrorList) {
	if warning == nil {
		return nil
	}
	wrong := func(why string) { out = append(out, field.Invalid(path, warning, why)) }
	if !deprecated {
		wrong("can only be set for deprecated versions")
		return out
	}
	if len(*warning) > longestWarning {
		wrong("must be <= 256 characters long")
	}
	if *warning == "" {
		wrong("must not be an empty string")
	}
	if i := strings.IndexFunc(*warning, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		wrong(fmt.Sprintf("must only contain printable UTF-8 characters; non-printable character found at index %d", i))
	}
	if !utf8.ValidString(*warning) {
		wrong("must only contain printable UTF-8 characters")
	}
	return out
}

// checkConversion checks how objects are converted. The address of a webhook is not looked at: it is not called.
func checkConversion(c *apiextensions.CustomResourceConversion, path *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	out, webhook := oneOf(path.Child("strategy"), string(c.Strategy), "None", "Webhook"), path.Child("webhookClientConfig")
	versions := path.Child("conversionReviewVersions")
	if c.Strategy != apiextensions.WebhookConverter {
		const unwanted = "should not be set when strategy is not set to Webhook"
		if c.WebhookClientConfig != nil {
			out = append(out, field.Forbidden(webhook, unwanted))
		}
		if len(c.ConversionReviewVersions) > 0 {
			out = append(out, field.Forbidden(versions, unwanted))
		}
		return out
	}
	if w := c.WebhookClientConfig; w == nil {
		out = append(out, field.Required(webhook, "required when strategy is set to Webhook"))
	} else if (w.URL == nil) == (w.Service == nil) {
		out = append(out, field.Required(webhook, "exactly one of url or service is required"))
	}
	if len(c.ConversionReviewVersions) == 0 {
		out = append(out, field.Required(versions, ""))
	} else if !slices.Contains(c.ConversionReviewVersions, "v1") && !slices.Contains(c.ConversionReviewVersions, "v1beta1") {
		out = append(out, field.Invalid(versions, c.ConversionReviewVersions, "must include at least one of v1, v1beta1"))
	}
	return out
}
