// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/openapi"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

var (
	conditionType   = regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9_.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
	conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

func (s *setter) condition(at []string, c setCondition) {
	out := condition{kind: c.Type}
	if c.Type != "" && !conditionType.MatchString(c.Type) {
		s.fault(append(at, "type"), "want one CamelCase word, found %q", c.Type)
	}
	switch value := c.Status.value.(type) {
	case string, bool:
		out.status = s.template(value, nil, append(slices.Clone(at), "status")...)
		if out.status != nil && len(out.status.Programs()) == 0 && truth(value) == "" {
			s.fault(append(at, "status"), "want true, false, True, False or Unknown, found %v", value)
		}
	case nil:
	default:
		s.fault(append(at, "status"), "want true, false, True, False or Unknown, found %v", value)
	}
	if c.Reason != "" {
		out.reason = s.template(c.Reason, nil, append(slices.Clone(at), "reason")...)
		if out.reason != nil && len(out.reason.Programs()) == 0 && !conditionReason.MatchString(c.Reason) {
			s.fault(append(at, "reason"), "want one CamelCase word, found %q", c.Reason)
		}
	}
	if c.Message != "" {
		out.message = s.template(c.Message, nil, append(slices.Clone(at), "message")...)
	}
	if c.When != "" {
		place := append(slices.Clone(at), "when")
		if out.when = s.predicate(string(c.When), "when", true, place...); out.when != nil {
			s.ask(place, "condition "+c.Type+": when", out.when)
		}
	}
	s.conditions = append(s.conditions, out)
}

// judge evaluates the status of a condition, with the default reason and message. If it is not true, these come
// from the first object that is not ready among those that the status checks with ready(). The error wraps
// [expr.ErrMissing] if the status needs a value that is missing, or has none.
func (c condition) judge(scope expr.Scope) (status metav1.ConditionStatus, reason, message string, err error) {
	var unready *dsl.Readiness
	scope.Unready = func(why dsl.Readiness) {
		if unready == nil {
			unready = &why
		}
	}
	value, err := c.status.Render(scope)
	if err == nil && (value == nil || value == expr.None) {
		err = errNoStatus
	}
	if err != nil {
		return "", "", "", err
	}
	switch status = truth(value); {
	case status == "":
		return "", "", "", dsl.Permanent(fmt.Errorf("its status is %s, want true, false, True, False or Unknown", scope.Subject.Secrets.Shown(value)))
	case status == metav1.ConditionTrue:
		return status, c.kind, "", nil
	case unready != nil:
		return status, unready.Reason, unready.Message, nil
	}
	return status, "Not" + c.kind, "", nil
}

// errNoStatus is the error of a status whose expression gives null, or an optional value that is not there.
var errNoStatus = noValue{}

type noValue struct{}

func (noValue) Error() string   { return "its status has no value" }
func (noValue) Unwrap() []error { return []error{expr.ErrMissing} }

// unresolved is the reason of a condition that cannot be worked out.
const unresolved = "Unresolved"

// lacking says which missing value an error is about, without the place of the expression.
func lacking(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return "Cannot be worked out: " + err.Error()
}

// set sets the condition, or leaves it as it is. One that cannot be worked out because a value is missing is Unknown, and
// says which value.
func (c condition) set(p *dsl.Patch, scope expr.Scope) error {
	status, reason, message, err := c.says(scope)
	switch {
	case errors.Is(err, expr.ErrMissing):
		status, reason, message = metav1.ConditionUnknown, unresolved, lacking(err)
	case err != nil:
		return fmt.Errorf("setting condition %s: %w", c.kind, err)
	case status == "":
		return nil
	}
	p.SetCondition(c.kind, status, reason, plain.Short(message, mostMessage))
	return nil
}

// says works out what the condition says. The status is empty if it is to stay as it is. If the author's reason or message
// needs a value that is missing, the status counts all the same, and the condition says what is missing.
func (c condition) says(scope expr.Scope) (status metav1.ConditionStatus, reason, message string, err error) {
	if c.when != nil {
		if holds, err := c.when.Bool(scope); err != nil || !holds {
			return "", "", "", err
		}
	}
	if status, reason, message, err = c.judge(scope); err != nil {
		return "", "", "", err
	}
	if c.reason != nil {
		given, err := text(c.reason, scope)
		switch {
		case err == nil:
			reason = given
		case errors.Is(err, expr.ErrMissing):
			reason, message = unresolved, lacking(err)
		default:
			return "", "", "", err
		}
	}
	if !conditionReason.MatchString(reason) || len(reason) > mostReason {
		return "", "", "", dsl.Permanent(fmt.Errorf("its reason is %s, want one CamelCase word", scope.Subject.Secrets.Shown(reason)))
	}
	if c.message != nil {
		if message, err = text(c.message, scope); errors.Is(err, expr.ErrMissing) {
			message, err = lacking(err), nil
		}
	}
	return status, reason, message, err
}

// truth reads a condition's status; empty if the value is not one.
func truth(value any) metav1.ConditionStatus {
	switch value {
	case true, "True", "true":
		return metav1.ConditionTrue
	case false, "False", "false":
		return metav1.ConditionFalse
	case "Unknown":
		return metav1.ConditionUnknown
	}
	return ""
}

// holdsConditions checks that the resource's schema keeps conditions.
func holdsConditions(s shape.Schemas) []error {
	self := s.Self.Schema
	if self == nil {
		return nil
	}
	if status := property(self, "status"); status != nil && len(status.Properties) == 0 {
		return nil // any field is allowed
	}
	lacks := openapi.ConditionsLack(self)
	if lacks == "" {
		return nil
	}
	return []error{&shape.Misfit{Path: []string{"set", "conditions"}, Message: lacks + ", so none is written"}}
}
