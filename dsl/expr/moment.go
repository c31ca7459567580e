// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Time evaluates an expression that gives a time. Null and an absent optional give the zero time.
//
// An error means that there is no answer: a missing key, a result that is neither a time nor text in RFC 3339, or an
// evaluation that exceeds the cost limit of Kubernetes.
func (p *Program) Time(s Scope) (time.Time, error) {
	a := p.newActivation(s)
	out, _, err := p.eval(a)
	if err != nil {
		return time.Time{}, p.evaluation(err, a)
	}
	at, err := momentOf(out)
	if err != nil && a.secretive() {
		return at, errors.New("the result is no time" + unshown)
	}
	return at, err
}

// Moment makes the program a function for a handler's time. Name is the author's name for it, as in "at"; errors begin
// with it.
func (p *Program) Moment(name string, params dsl.Params) func(s *dsl.Subject) (time.Time, error) {
	return func(s *dsl.Subject) (time.Time, error) {
		at, err := p.Time(Scope{Subject: s, Params: params})
		if err != nil {
			return time.Time{}, fmt.Errorf("evaluating %s: %w", name, err)
		}
		return at, nil
	}
}

// momentOf converts a value of CEL to a time.
func momentOf(v ref.Val) (time.Time, error) {
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			return time.Time{}, nil
		}
		return momentOf(v.GetValue())
	case types.Null:
		return time.Time{}, nil
	case types.Timestamp:
		return passed(v.UTC()), nil
	case types.String:
		at, err := time.Parse(time.RFC3339, string(v))
		if err != nil {
			return time.Time{}, fmt.Errorf("the result is the text %q, want a time in RFC 3339, such as 2030-01-31T12:00:00Z", shortened(string(v)))
		}
		return passed(at.UTC()), nil
	}
	return time.Time{}, errors.New(WantMoment(named(v.Type().TypeName())))
}

// passed returns a time. The first moment of the year 1, which Go's clients write as the zero time, becomes a later time, because the
// engine takes the zero time for none.
func passed(at time.Time) time.Time {
	if at.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return at
}

// shortened returns a text of at most 40 characters.
func shortened(text string) string { return cut(text, 40) }

// WantMoment is the fault of an expression that gives something else than a time. What describes that.
func WantMoment(what string) string {
	if what == "a duration" {
		return "the result is a duration, want a time: add it to one, as in timestamp(self.metadata.creationTimestamp) + …"
	}
	return "the result is " + what + ", want a time, as from timestamp(…)"
}

// Duration evaluates an expression that gives a duration. Null and an absent optional give nil. An error means that there is no
// answer, as for [Program.Time].
func (p *Program) Duration(s Scope) (*time.Duration, error) {
	a := p.newActivation(s)
	out, _, err := p.eval(a)
	if err != nil {
		return nil, p.evaluation(err, a)
	}
	d, err := spanOf(out)
	if err != nil && a.secretive() {
		return nil, errors.New("the result is no duration" + unshown)
	}
	return d, err
}

// spanOf converts a value of CEL to a duration.
func spanOf(v ref.Val) (*time.Duration, error) {
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			return nil, nil
		}
		return spanOf(v.GetValue())
	case types.Null:
		return nil, nil
	case types.Duration:
		return &v.Duration, nil
	case types.String:
		d, err := time.ParseDuration(string(v))
		if err != nil {
			return nil, fmt.Errorf("the result is the text %q, want a duration such as 30s or 10m", shortened(string(v)))
		}
		return &d, nil
	}
	return nil, errors.New(WantSpan(named(v.Type().TypeName())))
}

// WantSpan is the fault of an expression that gives something else than a duration. What describes that.
func WantSpan(what string) string {
	return "the result is " + what + ", want a duration, as from duration('30s')"
}

// mayBe reports whether an expression of a type may give a value of another type, text, or nothing.
func mayBe(t, want *cel.Type) bool {
	if t.Kind() == types.OpaqueKind && t.TypeName() == "optional_type" && len(t.Parameters()) == 1 {
		t = t.Parameters()[0]
	}
	may := []*cel.Type{want, cel.StringType, cel.DynType, cel.NullType}
	return t.Kind() == types.TypeParamKind || slices.ContainsFunc(may, t.IsExactType) // the first is that of optional.none()
}
