// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"regexp"

	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

var (
	// rejection matches the API server's words about a request that a policy or a webhook refuses.
	rejection = regexp.MustCompile(`(?:( is) forbidden: )?(?:(?:ValidatingAdmissionPolicy|policy) '([^']+)' with binding '[^']+'|admission webhook "([^"]+)") denied (?:the )?request\b`)
	// ruleName matches the name that an operator gives the policy or webhook of a rule: rule, resource, group, operator, namespace and
	// domain. A name that ends in a digest instead is not taken apart.
	ruleName    = regexp.MustCompile(`^([a-z0-9-]+)\..+\.([a-z0-9-]+)\.([a-z0-9-]+)\.` + regexp.QuoteMeta(bookkeeping.Domain) + `$`)
	isShortened = regexp.MustCompile(`-[0-9a-f]{10}$`)
)

// Plainly returns an error in which the API server's words about a policy or a webhook name the rule and its operator. The
// server names a policy twice, so that a shortened text would lack the message of the rule.
func Plainly(text string) string {
	return rejection.ReplaceAllStringFunc(text, func(words string) string {
		found := rejection.FindStringSubmatch(words)
		is, policy, webhook := found[1], found[2], found[3]
		by := "policy " + policy
		if webhook != "" {
			by = "webhook " + webhook
		}
		if rule := ruleName.FindStringSubmatch(policy + webhook); rule != nil && !isShortened.MatchString(rule[3]) {
			by = "rule " + rule[1] + " of operator " + rule[2]
		}
		if is != "" {
			return " is rejected by " + by
		}
		return "rejected by " + by
	})
}
