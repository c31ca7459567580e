// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// checking looks for faults in the spec of a policy, in the words of the API server.
type checking struct {
	compiler plugincel.Compiler
	params   bool
	faults   field.ErrorList
}

// expression checks that an expression compiles. Text is the expression as the fault quotes it.
func (c *checking) expression(at *field.Path, e plugincel.ExpressionAccessor, text string, declared plugincel.OptionalVariableDeclarations) {
	declared.HasParams = c.params
	c.fault(at, text, c.compiler.CompileCELExpression(e, declared, environment.NewExpressions).Error)
}

// fault adds the error of a compiler, if there is one.
func (c *checking) fault(at *field.Path, text string, err *apiservercel.Error) {
	switch {
	case err == nil:
	case err.Type == apiservercel.ErrorTypeRequired:
		c.faults = append(c.faults, field.Required(at, err.Detail))
	case err.Type == apiservercel.ErrorTypeInvalid:
		c.faults = append(c.faults, field.Invalid(at, text, err.Detail))
	default:
		c.faults = append(c.faults, field.InternalError(at, err))
	}
}

// missing adds a fault if a text is blank, and reports whether it is.
func (c *checking) missing(at *field.Path, text, why string) bool {
	blank := strings.TrimSpace(text) == ""
	if blank {
		c.faults = append(c.faults, field.Required(at, why))
	}
	return blank
}

// supported adds a fault if a value is not one of these.
func supported[T ~string](c *checking, at *field.Path, value T, values ...T) {
	if !sets.New(values...).Has(value) {
		c.faults = append(c.faults, field.NotSupported(at, value, sets.List(sets.New(values...))))
	}
}

// CheckValidating returns the faults of a policy.
func CheckValidating(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	s, at := p.Spec, field.NewPath("spec")
	c := &checking{compiler: newCompiler(), params: s.ParamKind != nil}
	c.common(at, s.FailurePolicy, s.ParamKind, s.MatchConstraints)
	c.conditions(at.Child("matchConditions"), s.MatchConditions)
	c.variables(at.Child("variables"), s.Variables)
	if len(s.Validations) == 0 && len(s.AuditAnnotations) == 0 {
		for _, name := range []string{"validations", "auditAnnotations"} {
			c.faults = append(c.faults, field.Required(at.Child(name), "validations or auditAnnotations must contain at least one item"))
		}
	}
	for i, v := range s.Validations {
		c.validation(at.Child("validations").Index(i), v)
	}
	c.annotations(at.Child("auditAnnotations"), p.Name, s.AuditAnnotations)
	return c.faults
}

// CheckMutating returns the faults of a policy.
func CheckMutating(p *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
	s, at := p.Spec, field.NewPath("spec")
	c := &checking{compiler: newCompiler(), params: s.ParamKind != nil}
	c.common(at, s.FailurePolicy, s.ParamKind, s.MatchConstraints)
	if s.MatchConstraints != nil {
		c.changes(at.Child("matchConstraints"), s.MatchConstraints)
	}
	c.conditions(at.Child("matchConditions"), s.MatchConditions)
	c.variables(at.Child("variables"), s.Variables)
	if len(s.Mutations) == 0 {
		c.faults = append(c.faults, field.Required(at.Child("mutations"), "mutations must contain at least one item"))
	}
	for i, m := range s.Mutations {
		c.mutation(at.Child("mutations").Index(i), m)
	}
	if policy := at.Child("reinvocationPolicy"); s.ReinvocationPolicy == "" {
		c.faults = append(c.faults, field.Required(policy, ""))
	} else {
		supported(c, policy, s.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy, admissionv1.IfNeededReinvocationPolicy)
	}
	return c.faults
}

// common checks what policies of both kinds have.
func (c *checking) common(at *field.Path, failure *admissionv1.FailurePolicyType, kind *admissionv1.ParamKind, constraints *admissionv1.MatchResources) {
	if failure == nil {
		c.faults = append(c.faults, field.Required(at.Child("failurePolicy"), ""))
	} else {
		supported(c, at.Child("failurePolicy"), *failure, admissionv1.Fail, admissionv1.Ignore)
	}
	if kind != nil {
		c.paramKind(at.Child("paramKind"), kind)
	}
	at = at.Child("matchConstraints")
	if constraints == nil {
		c.faults = append(c.faults, field.Required(at, ""))
		return
	}
	c.resources(at, constraints)
	if len(constraints.ResourceRules) == 0 {
		c.faults = append(c.faults, field.Required(at.Child("resourceRules"), ""))
	}
}

// changes checks that no rule is about deletions, which change no object.
func (c *checking) changes(at *field.Path, m *admissionv1.MatchResources) {
	for _, r := range m.ResourceRules {
		for _, op := range r.Operations {
			supported(c, at.Child("resourceRules", "operations"), op, admissionv1.OperationAll, admissionv1.Create, admissionv1.Update, admissionv1.Connect)
		}
	}
}

// maxConditions is how many match conditions a policy may have.
const maxConditions = 64

func (c *checking) conditions(at *field.Path, conditions []admissionv1.MatchCondition) {
	if len(conditions) > maxConditions {
		c.faults = append(c.faults, field.TooMany(at, len(conditions), maxConditions))
	}
	alone := &checking{compiler: plainCompiler(), params: c.params} // they see no variables
	names := sets.New[string]()
	for i, m := range conditions {
		expression, name := at.Index(i).Child("expression"), at.Index(i).Child("name")
		if !alone.missing(expression, m.Expression, "") {
			m.Expression = strings.TrimSpace(m.Expression)
			alone.expression(expression, &condition{m}, m.Expression, plugincel.OptionalVariableDeclarations{HasAuthorizer: true})
		}
		if m.Name == "" {
			alone.faults = append(alone.faults, field.Required(name, ""))
		} else {
			alone.faults = append(alone.faults, qualified(name, m.Name)...)
		}
		if m.Name != "" && names.Has(m.Name) {
			alone.faults = append(alone.faults, field.Duplicate(name, m.Name))
		}
		names.Insert(m.Name)
	}
	c.faults = append(c.faults, alone.faults...)
}

// CheckConditions returns the faults of a webhook's match conditions.
func CheckConditions(at *field.Path, conditions []admissionv1.MatchCondition) field.ErrorList {
	c := &checking{}
	c.conditions(at, conditions)
	return c.faults
}

func (c *checking) variables(at *field.Path, variables []admissionv1.Variable) {
	compiler := c.compiler.(*plugincel.CompositedCompiler)
	for i, v := range variables {
		name, expression := at.Index(i).Child("name"), at.Index(i).Child("expression")
		if !c.missing(name, v.Name, "name is not specified") && !isIdentifier(v.Name) {
			c.faults = append(c.faults, field.Invalid(name, v.Name, "must be a valid CEL identifier"))
		}
		if !c.missing(expression, v.Expression, "expression is not specified") {
			declared := plugincel.OptionalVariableDeclarations{HasParams: c.params, HasAuthorizer: true}
			c.fault(expression, v.Expression, compiler.CompileAndStoreVariable(&variable{v}, declared, environment.NewExpressions).Error)
		}
	}
}

func (c *checking) validation(at *field.Path, v admissionv1.Validation) {
	if expression := at.Child("expression"); !c.missing(expression, v.Expression, "expression is not specified") {
		c.expression(expression, &validation{v}, v.Expression, plugincel.OptionalVariableDeclarations{HasAuthorizer: true})
	}
	text := strings.TrimSpace(v.MessageExpression)
	switch expression := at.Child("messageExpression"); {
	case text != "":
		c.expression(expression, &message{v.MessageExpression}, v.MessageExpression, plugincel.OptionalVariableDeclarations{})
	case v.MessageExpression != "":
		c.faults = append(c.faults, field.Invalid(expression, v.MessageExpression, "must be non-empty if specified"))
	}
	switch text := strings.TrimSpace(v.Message); {
	case v.Message != "" && text == "":
		c.faults = append(c.faults, field.Invalid(at.Child("message"), v.Message, "must be non-empty if specified"))
	case strings.ContainsAny(text, "\n\r"):
		c.faults = append(c.faults, field.Invalid(at.Child("message"), v.Message, "must not contain line breaks"))
	}
	if v.Reason != nil {
		supported(c, at.Child("reason"), *v.Reason, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)
	}
}

const (
	// maxAnnotations is how many audit annotations a policy may have.
	maxAnnotations = 20
	// maxValueExpression is how long the expression of one may be.
	maxValueExpression = 5 * 1024
)

func (c *checking) annotations(at *field.Path, policy string, annotations []admissionv1.AuditAnnotation) {
	if len(annotations) > maxAnnotations {
		c.faults = append(c.faults, field.Invalid(at, annotations, fmt.Sprintf("must not have more than %d auditAnnotations", maxAnnotations)))
	}
	keys := sets.New[string]()
	for i, a := range annotations {
		key, expression := at.Index(i).Child("key"), at.Index(i).Child("valueExpression")
		c.faults = append(c.faults, qualified(key, policy+"/"+a.Key)...)
		if text := strings.TrimSpace(a.ValueExpression); len(text) > maxValueExpression {
			c.faults = append(c.faults, field.Required(expression, fmt.Sprintf("must not exceed %d bytes in length", maxValueExpression)))
		} else if !c.missing(expression, text, "valueExpression is not specified") {
			trimmed := a
			trimmed.ValueExpression = text
			c.expression(expression, &annotation{trimmed}, a.ValueExpression, plugincel.OptionalVariableDeclarations{HasAuthorizer: true})
		}
		if keys.Has(a.Key) {
			c.faults = append(c.faults, field.Duplicate(key, a.Key))
		}
		keys.Insert(a.Key)
	}
}

func (c *checking) mutation(at *field.Path, m admissionv1.Mutation) {
	json, apply := at.Child("jsonPatch"), at.Child("applyConfiguration")
	declared := plugincel.OptionalVariableDeclarations{HasAuthorizer: true, HasPatchTypes: true}
	switch m.PatchType {
	case "":
		c.faults = append(c.faults, field.Required(at.Child("patchType"), ""))
	case admissionv1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			c.faults = append(c.faults, field.Required(json, "must be specified when patchType is JSONPatch"))
		} else if !c.missing(json.Child("expression"), m.JSONPatch.Expression, "") {
			text := strings.TrimSpace(m.JSONPatch.Expression)
			c.expression(json.Child("expression"), &patch.JSONPatchCondition{Expression: text}, text, declared)
		}
		if m.ApplyConfiguration != nil {
			c.faults = append(c.faults, field.Invalid(apply, "{applyConfiguration}", "must not be specified when patchType is JSONPatch"))
		}
	case admissionv1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			c.faults = append(c.faults, field.Required(apply, "must be specified when patchType is ApplyConfiguration"))
		} else if !c.missing(apply.Child("expression"), m.ApplyConfiguration.Expression, "") {
			text := strings.TrimSpace(m.ApplyConfiguration.Expression)
			c.expression(apply.Child("expression"), &patch.ApplyConfigurationCondition{Expression: text}, text, declared)
		}
		if m.JSONPatch != nil {
			c.faults = append(c.faults, field.Invalid(json, "{jsonPatch}", "must not be specified when patchType is ApplyConfiguration"))
		}
	default:
		supported(c, at.Child("patchType"), m.PatchType, admissionv1.PatchTypeApplyConfiguration, admissionv1.PatchTypeJSONPatch)
	}
}

// qualified returns the faults of a name that may have a domain.
func qualified(at *field.Path, name string) (out field.ErrorList) {
	for _, why := range utilvalidation.IsQualifiedName(name) {
		out = append(out, field.Invalid(at, name, why))
	}
	return out
}
