// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CheckValidatingBinding returns the faults of a binding.
func CheckValidatingBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	c, at := &checking{}, field.NewPath("spec")
	c.binding(at, b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
	actions := sets.New[admissionv1.ValidationAction]()
	for i, action := range b.Spec.ValidationActions {
		supported(c, at.Child("validationActions").Index(i), action, admissionv1.Deny, admissionv1.Warn, admissionv1.Audit)
		if actions.Has(action) {
			c.faults = append(c.faults, field.Duplicate(at.Child("validationActions").Index(i), action))
		}
		actions.Insert(action)
	}
	switch actions := at.Child("validationActions"); {
	case len(b.Spec.ValidationActions) == 0:
		c.faults = append(c.faults, field.Required(actions, ""))
	case slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) && slices.Contains(b.Spec.ValidationActions, admissionv1.Warn):
		c.faults = append(c.faults, field.Invalid(actions, b.Spec.ValidationActions,
			"must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return c.faults
}

// CheckMutatingBinding returns the faults of a binding.
func CheckMutatingBinding(b *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
	c, at := &checking{}, field.NewPath("spec")
	c.binding(at, b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
	if b.Spec.MatchResources != nil {
		c.changes(at.Child("matchResources"), b.Spec.MatchResources)
	}
	return c.faults
}

func (c *checking) binding(at *field.Path, policy string, ref *admissionv1.ParamRef, resources *admissionv1.MatchResources) {
	if policy == "" {
		c.faults = append(c.faults, field.Required(at.Child("policyName"), ""))
	} else {
		c.each(at.Child("policyName"), policy, apivalidation.NameIsDNSSubdomain(policy, false))
	}
	if ref != nil {
		c.reference(at.Child("paramRef"), ref)
	}
	if resources != nil {
		c.resources(at.Child("matchResources"), resources)
	}
}

// each adds a fault for each message about a value.
func (c *checking) each(at *field.Path, value any, messages []string) {
	for _, message := range messages {
		c.faults = append(c.faults, field.Invalid(at, value, message))
	}
}

func (c *checking) reference(at *field.Path, ref *admissionv1.ParamRef) {
	const either = "name and selector are mutually exclusive"
	if ref.Name != "" {
		c.each(at.Child("name"), ref.Name, content.IsPathSegmentName(ref.Name))
	}
	if ref.Name != "" && ref.Selector != nil {
		c.faults = append(c.faults, field.Forbidden(at.Child("name"), either))
	}
	if ref.Selector != nil {
		c.faults = append(c.faults, metav1validation.ValidateLabelSelector(ref.Selector, metav1validation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	}
	if ref.Name != "" && ref.Selector != nil {
		c.faults = append(c.faults, field.Forbidden(at.Child("selector"), either))
	}
	if ref.Name == "" && ref.Selector == nil {
		c.faults = append(c.faults, field.Required(at, "one of name or selector must be specified"))
	}
	if action := ref.ParameterNotFoundAction; action == nil || *action == "" {
		c.faults = append(c.faults, field.Required(at.Child("parameterNotFoundAction"), ""))
	} else if *action != admissionv1.DenyAction && *action != admissionv1.AllowAction {
		c.faults = append(c.faults, field.NotSupported(at.Child("parameterNotFoundAction"), action, []string{"Deny", "Allow"}))
	}
}

func (c *checking) paramKind(at *field.Path, kind *admissionv1.ParamKind) {
	version := at.Child("apiVersion")
	switch group, name, several := strings.Cut(kind.APIVersion, "/"); {
	case kind.APIVersion == "":
		c.faults = append(c.faults, field.Required(version, ""))
	case strings.Count(kind.APIVersion, "/") > 1:
		c.faults = append(c.faults, field.Invalid(version, kind.APIVersion, "unexpected GroupVersion string: "+kind.APIVersion))
	default:
		if !several {
			group, name = "", kind.APIVersion
		}
		if wrong := utilvalidation.IsDNS1123Subdomain(group); group != "" && len(wrong) > 0 {
			c.faults = append(c.faults, field.Invalid(version, group, strings.Join(wrong, ",")))
		}
		if wrong := utilvalidation.IsDNS1035Label(name); name == "" {
			c.faults = append(c.faults, field.Invalid(version, kind.APIVersion, "version must be specified"))
		} else if len(wrong) > 0 {
			c.faults = append(c.faults, field.Invalid(version, name, strings.Join(wrong, ",")))
		}
	}
	if wrong := utilvalidation.IsDNS1035Label(strings.ToLower(kind.Kind)); kind.Kind == "" {
		c.faults = append(c.faults, field.Required(at.Child("kind"), ""))
	} else if len(wrong) > 0 {
		c.faults = append(c.faults, field.Invalid(at.Child("kind"), kind.Kind, "may have mixed case, but should otherwise match: "+strings.Join(wrong, ",")))
	}
}

func (c *checking) resources(at *field.Path, m *admissionv1.MatchResources) {
	if m.MatchPolicy == nil {
		c.faults = append(c.faults, field.Required(at.Child("matchPolicy"), ""))
	} else {
		supported(c, at.Child("matchPolicy"), *m.MatchPolicy, admissionv1.Equivalent, admissionv1.Exact)
	}
	strict := metav1validation.LabelSelectorValidationOptions{}
	c.faults = append(c.faults, metav1validation.ValidateLabelSelector(orAll(m.NamespaceSelector), strict, at.Child("namespaceSelector"))...)
	c.faults = append(c.faults, metav1validation.ValidateLabelSelector(orAll(m.ObjectSelector), strict, at.Child("objectSelector"))...)
	for i, r := range m.ResourceRules {
		c.rule(at.Child("resourceRules").Index(i), r)
	}
	for i, r := range m.ExcludeResourceRules {
		c.rule(at.Child("excludeResourceRules").Index(i), r)
	}
}

func (c *checking) rule(at *field.Path, r admissionv1.NamedRuleWithOperations) {
	names := sets.New[string]()
	for i, name := range r.ResourceNames {
		c.each(at.Child("resourceNames").Index(i), name, content.IsPathSegmentName(name))
		if names.Has(name) {
			c.faults = append(c.faults, field.Duplicate(at.Child("resourceNames").Index(i), name))
		}
		names.Insert(name)
	}
	wild(c, at.Child("operations"), r.Operations, "if '*' is present, must not specify other operations")
	for i, op := range r.Operations {
		supported(c, at.Child("operations").Index(i), op, admissionv1.OperationAll, admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect)
	}
	wild(c, at.Child("apiGroups"), r.APIGroups, "if '*' is present, must not specify other API groups")
	wild(c, at.Child("apiVersions"), r.APIVersions, "if '*' is present, must not specify other API versions")
	for i, version := range r.APIVersions {
		if version == "" {
			c.faults = append(c.faults, field.Required(at.Child("apiVersions").Index(i), ""))
		}
	}
	c.ruleResources(at.Child("resources"), r.Resources)
	if r.Scope != nil {
		supported(c, at.Child("scope"), *r.Scope, admissionv1.ClusterScope, admissionv1.NamespacedScope, admissionv1.AllScopes)
	}
}

// wild checks that a list is not empty, and that * stands alone.
func wild[T ~string](c *checking, at *field.Path, list []T, why string) {
	if len(list) == 0 {
		c.faults = append(c.faults, field.Required(at, ""))
	}
	if len(list) > 1 && slices.Contains(list, "*") {
		c.faults = append(c.faults, field.Invalid(at, list, why))
	}
}

// ruleResources checks resources such as pods, pods/*, */scale and */*.
func (c *checking) ruleResources(at *field.Path, resources []string) {
	if len(resources) == 0 {
		c.faults = append(c.faults, field.Required(at, ""))
	}
	all, everywhere := sets.New[string](), sets.New[string]()
	alone := false
	for i, each := range resources {
		resource, sub, several := strings.Cut(each, "/")
		switch {
		case each == "":
			c.faults = append(c.faults, field.Required(at.Index(i), ""))
			continue
		case !several:
			alone = each != "*"
			continue
		}
		if all.Has(resource) {
			c.faults = append(c.faults, field.Invalid(at.Index(i), each, fmt.Sprintf("if '%s/*' is present, must not specify %s", resource, each)))
		}
		if everywhere.Has(sub) {
			c.faults = append(c.faults, field.Invalid(at.Index(i), each, fmt.Sprintf("if '*/%s' is present, must not specify %s", sub, each)))
		}
		if sub == "*" {
			all.Insert(resource)
		}
		if resource == "*" {
			everywhere.Insert(sub)
		}
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		c.faults = append(c.faults, field.Invalid(at, resources, "if '*/*' is present, must not specify other resources"))
	}
	if slices.Contains(resources, "*") && alone {
		c.faults = append(c.faults, field.Invalid(at, resources, "if '*' is present, must not specify other resources without subresources"))
	}
}

// identifier is the form of a name in CEL.
var identifier = regexp.MustCompile("^[_a-zA-Z][_a-zA-Z0-9]*$")

// isIdentifier reports whether a variable can have a name. CEL keeps some words for itself.
func isIdentifier(name string) bool {
	switch name {
	case "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
		"loop", "package", "namespace", "return", "var", "void", "while":
		return false
	}
	return identifier.MatchString(name)
}
