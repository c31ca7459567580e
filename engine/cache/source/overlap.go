// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/handwerk-dev/handwerk/dsl"
)

// ScopesOverlap reports whether two scopes may have a namespace in common. Two scopes with globs may, unless no labels
// match the selectors of both.
func ScopesOverlap(a, b dsl.Scope) bool {
	if exclusive(a.NamespaceSelector, b.NamespaceSelector) {
		return false
	}
	a.NamespaceSelector, b.NamespaceSelector = "", ""
	for _, two := range [][2]dsl.Scope{{a, b}, {b, a}} {
		if one, other := NewScope(ScopeSettings{Of: two[0]}), NewScope(ScopeSettings{Of: two[1]}); !two[0].Everywhere() && !one.Live() {
			return slices.ContainsFunc(two[0].Namespaces, other.Matches)
		}
	}
	return true
}

// exclusive reports whether no labels match both selectors: two of their requirements on one label contradict each other.
func exclusive(a, b string) bool {
	return slices.ContainsFunc(requirements(a), func(one labels.Requirement) bool {
		return slices.ContainsFunc(requirements(b), func(other labels.Requirement) bool {
			return one.Key() == other.Key() && (contradict(one, other) || contradict(other, one))
		})
	})
}

// requirements returns the requirements of a selector; none if it is invalid.
func requirements(selector string) []labels.Requirement {
	parsed, err := labels.ParseToRequirements(selector)
	if err != nil {
		return nil
	}
	return parsed
}

// contradict reports whether no label meets both requirements, if the first one is for some values or for none.
func contradict(one, other labels.Requirement) bool {
	switch one.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		return !slices.ContainsFunc(one.ValuesUnsorted(), func(value string) bool {
			return other.Matches(labels.Set{one.Key(): value})
		})
	case selection.DoesNotExist:
		return !other.Matches(labels.Set{})
	default:
		return false
	}
}

// comma separates the patterns in a text, and semicolon the selector from them. Neither patterns nor selectors have a
// semicolon.
const (
	comma     = ","
	semicolon = ";"
)

// EncodeScope returns a scope in the form that the lock of an operator has. FromText parses it.
func EncodeScope(s dsl.Scope) string {
	text := strings.Join(s.Namespaces, comma)
	if s.NamespaceSelector != "" {
		text += semicolon + s.NamespaceSelector
	}
	return text
}

// DecodeScope parses the form that [EncodeScope] returns.
func DecodeScope(text string) (s dsl.Scope) {
	patterns, selector, _ := strings.Cut(text, semicolon)
	if s.NamespaceSelector = selector; patterns != "" {
		s.Namespaces = strings.Split(patterns, comma)
	}
	return s
}
