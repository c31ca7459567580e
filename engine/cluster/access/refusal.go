// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

const (
	// listedMost bounds the rights of a role that a message lists, in bytes; the message is to fit into a condition.
	listedMost = 240
	// readMost bounds the rights of a role that are read from a refusal.
	readMost = 100

	rbacGroup = "rbac.authorization.k8s.io"
	bind      = "bind"
	escalate  = "escalate"
	// aggregates ends the refusal of a role that has the rules of others.
	aggregates = "must have cluster-admin privileges to use the aggregationRule"
)

// refusal is an answer of the API server that a right is missing.
type refusal struct {
	// rights are the missing rights, without a namespace. If the server rejected a grant, one of them may be enough.
	rights []rbac.Rule
	// text is the server's message, in one line.
	text string
	// status is its answer.
	status *apierrors.StatusError
}

// refusedRight matches the message about a missing right. Messages of admission and quotas read differently, and may
// quote such words from an object. See responsewriters/errors.go in k8s.io/apiserver.
var refusedRight = regexp.MustCompile(`^[a-z0-9./-]+(?: "[^"\\]*")? is forbidden: User "[^"]*" cannot ([a-z]+) resource "([a-z0-9./-]+)" in API group "([^"]*)"`)

// refusedGrant matches the message about a grant of rights that the account does not have. See registry/rbac/validation
// in k8s.io/kubernetes. The message lists a rule in each line, and advise joins the lines. Its groups do not name the
// account.
var (
	refusedGrant = regexp.MustCompile(`(?s)^([a-z0-9./-]+(?: "[^"\\]*")? is forbidden: user .*?)(?: \(groups=\[[^\]]*\]\))?( is attempting to grant RBAC permissions not currently held:)\s(.*)$`)
	refusedRule  = regexp.MustCompile(`\{[^{}]*\}`)
)

// refused returns the missing rights that an error of the API server names; nil if it names none.
func refused(err error) *refusal {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || status.ErrStatus.Reason != metav1.StatusReasonForbidden {
		return nil
	}
	out := &refusal{text: status.ErrStatus.Message, status: status}
	if found := refusedRight.FindStringSubmatch(out.text); found != nil {
		resource, subresource, _ := strings.Cut(found[2], "/")
		out.rights = []rbac.Rule{{Group: found[3], Resource: resource, Subresource: subresource, Verb: found[1]}}
		return out
	}
	found := refusedGrant.FindStringSubmatch(out.text)
	switch {
	case status.ErrStatus.Details == nil || found == nil && !strings.Contains(out.text, aggregates):
		return nil
	case found != nil:
		rules := refusedRule.FindAllString(found[3], -1)
		out.text = found[1] + found[2] + " " + listed(rules)
		out.rights = inRules(rules)
	}
	if out.rights = append(standIns(status.ErrStatus.Details.Kind), out.rights...); len(out.rights) == 0 {
		return nil
	}
	return out
}

// anyIn reports whether one of the missing rights is among all.
func (r *refusal) anyIn(all []rbac.Rule) bool {
	return slices.ContainsFunc(r.rights, func(one rbac.Rule) bool {
		return rbac.Has(all, one.Group, one.Resource, one.Subresource, one.Verb)
	})
}

// standIns returns the rights with which an account may write a role or a binding although it lacks the granted rights.
// One of them is enough.
func standIns(written string) (out []rbac.Rule) {
	rule := func(verb, resource string) rbac.Rule {
		return rbac.Rule{Group: rbacGroup, Resource: resource, Verb: verb}
	}
	switch written {
	case "roles", "clusterroles":
		return []rbac.Rule{rule(escalate, written)}
	case "clusterrolebindings":
		return []rbac.Rule{rule(bind, "clusterroles")}
	case "rolebindings":
		return []rbac.Rule{rule(bind, "clusterroles"), rule(bind, "roles")}
	}
	return nil
}

// listed joins rules in one line, as many as there is room for.
func listed(rules []string) string {
	out := ""
	for i, rule := range rules {
		switch {
		case i == 0:
			out = plain.Short(rule, listedMost)
		case len(out)+len(rule) > listedMost:
			return fmt.Sprintf("%s and %d more", out, len(rules)-i)
		default:
			out += ", " + rule
		}
	}
	return out
}

// ruleFields matches the parts of a rule in a rejection, and ruleTexts the texts in one part.
var (
	ruleFields = regexp.MustCompile(`(APIGroups|Resources|Verbs):\[([^\]]*)\]`)
	ruleTexts  = regexp.MustCompile(`"([^"]*)"`)
)

// inRules parses the rules of a rejection, and returns their rights.
func inRules(rules []string) (out []rbac.Rule) {
	for _, rule := range rules {
		parts := map[string][]string{}
		for _, field := range ruleFields.FindAllStringSubmatch(rule, -1) {
			for _, text := range ruleTexts.FindAllStringSubmatch(field[2], -1) {
				parts[field[1]] = append(parts[field[1]], text[1])
			}
		}
		for _, group := range parts["APIGroups"] {
			for _, target := range parts["Resources"] {
				resource, subresource, _ := strings.Cut(target, "/")
				for _, verb := range parts["Verbs"] {
					out = append(out, rbac.Rule{Group: group, Resource: resource, Subresource: subresource, Verb: verb})
				}
			}
		}
		if len(out) >= readMost {
			return out[:readMost]
		}
	}
	return out
}

// declaration says how a handler's author declares the right.
func (r *refusal) declaration() string {
	first := r.rights[0]
	if first.Group == rbacGroup && (first.Verb == bind || first.Verb == escalate) {
		const form = "needs: [{resource: %s, verbs: [%s], names: [NAME]}] (%sdsl.Need in Go)"
		other := ""
		if len(r.rights) > 1 && r.rights[1].Verb == bind {
			other = r.rights[1].Resource + " for a Role; "
		}
		return fmt.Sprintf(form, first.Target(), first.Verb, other)
	}
	return fmt.Sprintf("needs: [{resource: %[1]s, verbs: [%[2]s]}] (dsl.Needs(%[2]q, %[1]q) in Go)", first.Target(), first.Verb)
}
