// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// validation, message, annotation, variable and condition are the expressions of policies, with the types that they may have.
type (
	validation struct{ admissionv1.Validation }
	message    struct{ text string }
	annotation struct{ admissionv1.AuditAnnotation }
	variable   struct{ admissionv1.Variable }
	condition  struct{ admissionv1.MatchCondition }
)

func (v *validation) GetExpression() string  { return v.Expression }
func (*validation) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }

func (m *message) GetExpression() string  { return m.text }
func (*message) ReturnTypes() []*cel.Type { return []*cel.Type{cel.StringType} }

func (a *annotation) GetExpression() string  { return a.ValueExpression }
func (*annotation) ReturnTypes() []*cel.Type { return []*cel.Type{cel.StringType, cel.NullType} }

func (v *variable) GetExpression() string  { return v.Expression }
func (v *variable) GetName() string        { return v.Name }
func (*variable) ReturnTypes() []*cel.Type { return []*cel.Type{cel.AnyType, cel.DynType} }

func (c *condition) GetExpression() string  { return c.Expression }
func (*condition) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }
