// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/handwerk-dev/handwerk/dsl"
)

// conditions returns the conditions of the rule, and those of the scope that no selector has.
func (m maker) conditions() []registrationv1.MatchCondition {
	return Named(append(Conditions(m.op, m.resource, m.handler.Admission), m.handler.Admission.Policy.Conditions...))
}

// Named returns conditions with names.
func Named(texts []string) (out []registrationv1.MatchCondition) {
	for i, text := range texts {
		out = append(out, registrationv1.MatchCondition{Name: fmt.Sprintf("condition-%d", i+1), Expression: text})
	}
	return out
}

// Conditions returns conditions that are true for the requests that a rule is about, as far as selectors cannot say it: globs of
// namespaces, selectors of fields, and that an update does more than let go of an object.
func Conditions(op *dsl.Operator, r *dsl.Resource, a *dsl.Admission) (out []string) {
	var globs, not []string
	for _, pattern := range op.Scope.Namespaces {
		name, excluded := strings.CutPrefix(pattern, "!")
		switch {
		case excluded && strings.ContainsAny(name, `*?[\`):
			not = append(not, expression(name))
		case !excluded:
			globs = append(globs, expression(name))
		}
	}
	space := "request.?namespace.orValue('')"
	if slices.ContainsFunc(op.Scope.Namespaces, func(p string) bool { return !strings.HasPrefix(p, "!") && strings.ContainsAny(p, `*?[\`) }) {
		out = append(out, fmt.Sprintf("%s == '' || %s.matches(%q)", space, space, "^("+strings.Join(globs, "|")+")$"))
	}
	if len(not) > 0 {
		out = append(out, fmt.Sprintf("!%s.matches(%q)", space, "^("+strings.Join(not, "|")+")$"))
	}
	if slices.Contains(a.Operations, admissionv1.Update) {
		out = append(out, unlessGoing)
	}
	if condition := fieldCondition(r.FieldSelector); condition != "" {
		out = append(out, condition)
	}
	return out
}

// unlessGoing leaves out updates of an object that is being deleted, unless they change more than its status and its metadata without
// the labels. An object that breaks a newer rule could otherwise lose no finalizer, and would stay for ever. The old object says whether
// it is being deleted: in the new one, a client could claim it.
const unlessGoing = "request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp)" +
	" || object.metadata.?labels != oldObject.metadata.?labels" +
	" || object.exists(k, !(k in ['metadata', 'status']) && !(k in oldObject && object[k] == oldObject[k]))" +
	" || oldObject.exists(k, !(k in ['metadata', 'status']) && !(k in object))"

// expression returns the regular expression of a glob of names. Brackets are the same in both.
func expression(glob string) string {
	return strings.NewReplacer(".", `\.`, "*", ".*", "?", ".").Replace(glob)
}

// fieldStep matches a step of a path that CEL can select.
var fieldStep = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// fieldCondition returns the condition of a field selector: the object has the fields before or after the change, as for labels. A
// missing field is the empty text, or false.
func fieldCondition(text string) string {
	selector, err := fields.ParseSelector(text)
	if err != nil || text == "" {
		return ""
	}
	var either []string
	for _, object := range []string{"object", "oldObject"} {
		all := []string{object + " != null"}
		for _, one := range selector.Requirements() {
			if condition := fieldRequirement(object, one); condition != "" {
				all = append(all, condition)
			}
		}
		either = append(either, strings.Join(all, " && "))
	}
	return strings.Join(either, " || ")
}

// fieldRequirement returns the condition of one requirement; empty for a field that CEL cannot select.
func fieldRequirement(object string, one fields.Requirement) string {
	for step := range strings.SplitSeq(one.Field, ".") {
		if !fieldStep.MatchString(step) {
			return ""
		}
		object += ".?" + step
	}
	sign := "=="
	if one.Operator == selection.NotEquals {
		sign = "!="
	}
	missing := "''"
	if one.Value == "true" || one.Value == "false" { // objects lack flags that are not set
		missing = "false"
	}
	return fmt.Sprintf("string(%s.orValue(%s)) %s %q", object, missing, sign, one.Value)
}
