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
	"github.com/handwerk-dev/handwerk/dsl/plain"
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
	s.conditions = append(s.conditions, out)
}

// judge evaluates the status of a condition, with the default reason and message. If it is not true, these come
// from the first object that is not ready among those that the status checks with ready().
func (c condition) judge(scope expr.Scope) (status metav1.ConditionStatus, reason, message string, err error) {
	var unready *dsl.Readiness
	scope.Unready = func(why dsl.Readiness) {
		if unready == nil {
			unready = &why
		}
	}
	value, err := c.status.Render(scope)
	missing := errors.Is(err, expr.ErrMissing)
	if err != nil && !missing {
		return "", "", "", err
	}
	status = truth(value)
	if missing || value == nil || value == expr.None {
		status = metav1.ConditionUnknown
	}
	switch {
	case status == "":
		return "", "", "", dsl.Permanent(fmt.Errorf("its status is %s, want true, false, True, False or Unknown", scope.Subject.Secrets.Shown(value)))
	case status == metav1.ConditionTrue:
		return status, c.kind, "", nil
	case unready != nil:
		return status, unready.Reason, unready.Message, nil
	}
	return status, "Not" + c.kind, "", nil
}

func (c condition) set(p *dsl.Patch, scope expr.Scope) error {
	status, reason, message, err := c.judge(scope)
	if err != nil {
		return fmt.Errorf("setting condition %s: %w", c.kind, err)
	}
	if c.reason != nil {
		if reason, err = text(c.reason, scope); err != nil {
			return fmt.Errorf("setting condition %s: %w", c.kind, err)
		}
	}
	if !conditionReason.MatchString(reason) || len(reason) > mostReason {
		return dsl.Permanent(fmt.Errorf("setting condition %s: its reason is %s, want one CamelCase word", c.kind, scope.Subject.Secrets.Shown(reason)))
	}
	if c.message != nil {
		if message, err = text(c.message, scope); err != nil && !errors.Is(err, expr.ErrMissing) {
			return fmt.Errorf("setting condition %s: %w", c.kind, err)
		}
	}
	p.SetCondition(c.kind, status, reason, plain.Short(message, mostMessage))
	return nil
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
