// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/openapi"
)

// isQuantity reports whether a schema is that of quantities, in built-in kinds or in custom resources. The latter have a pattern for it,
// which this program and controller-gen write alike up to brackets.
func isQuantity(s *spec.Schema) bool {
	return openapi.IsQuantity(s) || extension(s, "x-kubernetes-int-or-string") && strings.Contains(s.Pattern, "[KMGTPE]i")
}

// quantity reports a text that the API server rejects as a quantity. It compares the text with the pattern if there is one, because the
// server of a custom resource knows no other rule.
func (f *fitter) quantity(path []string, want valueType, value any) {
	text, isText := value.(string)
	if want.quantity == nil || !isText {
		return
	}
	if want.quantity.Pattern == "" {
		if _, err := resource.ParseQuantity(strings.TrimSpace(text)); err == nil {
			return
		}
	} else if pattern, err := regexp.Compile(want.quantity.Pattern); err != nil || pattern.MatchString(text) {
		return
	}
	f.fault(path, "%q is no quantity: want a number with a unit such as m, Mi or Gi, as in 500m or 2Gi", text)
}
