// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	ruling "k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
)

// Match says whether a policy sees a call.
type Match struct {
	Matches bool
	// Version is the one in which the policy sees the objects.
	Version Version
	// Err is why that is not known.
	Err error
}

// Matches reports whether a policy sees a call, by its matchConstraints.
func (r *rules) Matches(c *Call) Match {
	if r.constraints == nil {
		return Match{Err: errors.New("policy contained no match constraints, a required field")}
	}
	return matches(r.constraints, c)
}

// Matches reports whether a binding lets its policy see a call.
func (b *Binding) Matches(c *Call) Match {
	if b.resources == nil {
		return Match{Matches: true, Version: c.Version}
	}
	return matches(b.resources, c)
}

func matches(m *admissionv1.MatchResources, c *Call) Match {
	a := c.plain()
	if found, err := selectsSpace(m.NamespaceSelector, c); !found || err != nil {
		return Match{Err: err}
	}
	if found, err := selectsObject(m.ObjectSelector, c); !found || err != nil {
		return Match{Err: err}
	}
	if _, excluded := ruled(m.ExcludeResourceRules, m.MatchPolicy, c, a); excluded {
		return Match{}
	}
	if len(m.ResourceRules) == 0 {
		return Match{Matches: true, Version: c.Version}
	}
	in, found := ruled(m.ResourceRules, m.MatchPolicy, c, a)
	return Match{Matches: found, Version: in}
}

// ruled returns the version of the call's resource that rules have. That of the call comes first. Others count if the policy takes
// equivalent requests.
func ruled(rules []admissionv1.NamedRuleWithOperations, policy *admissionv1.MatchPolicyType, c *Call, a admission.Attributes) (Version, bool) {
	versions := []Version{c.Version}
	if policy != nil && *policy == admissionv1.Equivalent {
		versions = append(versions, c.Equivalent...)
	}
	has := func(v Version, r admissionv1.NamedRuleWithOperations) bool {
		matcher := ruling.Matcher{Rule: r.RuleWithOperations, Attr: &inVersion{a, v.Resource}}
		return matcher.Matches() && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, c.Name))
	}
	if slices.ContainsFunc(rules, func(r admissionv1.NamedRuleWithOperations) bool { return has(c.Version, r) }) {
		return c.Version, true
	}
	for _, r := range rules {
		for _, v := range versions[1:] {
			if has(v, r) {
				return v, true
			}
		}
	}
	return Version{}, false
}

// inVersion are attributes whose resource is in another version.
type inVersion struct {
	admission.Attributes
	resource schema.GroupVersionResource
}

func (v *inVersion) GetResource() schema.GroupVersionResource { return v.resource }

// selectsSpace reports whether a selector has the namespace of a call. It has all objects without a namespace but namespaces.
func selectsSpace(s *metav1.LabelSelector, c *Call) (bool, error) {
	if c.Namespace == "" && c.Resource.Resource != "namespaces" {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(orAll(s))
	if err != nil {
		return false, err
	}
	return selector.Matches(labels.Set(c.Labels)), nil
}

// selectsObject reports whether a selector has one of the objects of a call. Objects without metadata are only in the empty one.
func selectsObject(s *metav1.LabelSelector, c *Call) (bool, error) {
	selector, err := metav1.LabelSelectorAsSelector(orAll(s))
	if err != nil || selector.Empty() {
		return err == nil, err
	}
	return slices.ContainsFunc([]map[string]any{c.Object, c.Old}, func(tree map[string]any) bool {
		return tree["metadata"] != nil && selector.Matches(labels.Set((&unstructured.Unstructured{Object: tree}).GetLabels()))
	}), nil
}

// orAll returns a selector, or the one of everything: a server without schemas sets no defaults.
func orAll(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return &metav1.LabelSelector{}
	}
	return s
}
