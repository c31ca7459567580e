// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"

	"github.com/handwerk-dev/handwerk/dsl"
)

// enforced says who evaluates a rule about requests.
type enforced struct {
	Resource string `json:"resource"`
	Rule     string `json:"rule"`
	// By is policy or webhook. Why says what makes a webhook necessary.
	By  string `json:"by"`
	Why string `json:"why,omitempty"`
}

// String is a line for people.
func (e enforced) String() string {
	if e.By == "policy" {
		return fmt.Sprintf("%s: the API server evaluates rule %s, by a policy", e.Resource, e.Rule)
	}
	return fmt.Sprintf("%s: the operator evaluates rule %s, by a webhook: %s", e.Resource, e.Rule, e.Why)
}

// rulesOf returns the rules of an operator about requests.
func rulesOf(op *dsl.Operator) (out []enforced) {
	for _, r := range op.Resources() {
		for _, h := range r.Admissions() {
			one := enforced{Resource: r.Name.String(), Rule: h.ID, By: "policy"}
			if h.Admission.Hooked() {
				one.By, one.Why = "webhook", h.Admission.Webhook
			}
			out = append(out, one)
		}
	}
	return out
}
