// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// admitted is a resource whose objects the operator only decides about.
type admitted struct {
	Resource          string             `yaml:"resource" required:"true" doc:"The resource in kubectl's spelling, as in pods.v1. It is not watched."`
	NamespaceSelector *namespaceSelector `yaml:"namespaceSelector" min:"1" doc:"The namespaces by their labels. Absent: the namespaces of the operator's scope."`
	Selector          *labelChoice       `yaml:"selector" min:"1" doc:"The objects of the rules by their labels, before or after the change. Absent: all."`
	Let               lets               `yaml:"let" min:"1" mistaken:"vars,variables,locals,define" doc:"Named expressions, which the rules know as variables. Absent: none."`
	Validate          []validationRule   `yaml:"validate" required:"an entry of admission has validate or mutate" unless:"mutate" doc:"Rules that decide whether the API server stores an object."`
	Mutate            []mutationRule     `yaml:"mutate" doc:"Rules that change an object before the API server stores it. They run before the rules of validate."`
}

// labelChoice selects objects by labels.
type labelChoice struct {
	MatchLabels      map[string]string `yaml:"matchLabels" doc:"Labels that an object must have, with these values."`
	MatchExpressions []requirement     `yaml:"matchExpressions" doc:"Conditions on labels; all must hold."`
}

// admission has the options that both kinds of rules have.
type admission struct {
	ID            string         `yaml:"id" required:"true" mistaken:"name" doc:"The name of the rule, unique among the rules of its resource. It is part of the name of the policy or webhook."`
	Operations    []operation    `yaml:"operations" unique:"true" doc:"The requests that the rule is about. Default: create and update."`
	Subresources  []string       `yaml:"subresources" unique:"true" doc:"The subresources that the rule is about, as in status or scale. Absent: the object itself."`
	When          form.Predicate `yaml:"when" mistaken:"if,condition,matchConditions" doc:"While it is false, the rule does not apply. Variables as in the rule of validate. Absent: it always applies."`
	Labels        matches        `yaml:"labels" min:"1" doc:"Labels that the object must have: a value, or {exists: true} or {exists: false}."`
	Annotations   matches        `yaml:"annotations" min:"1" doc:"Annotations that the object must have, in the form of labels."`
	Params        *paramsObject  `yaml:"params" doc:"An object that expressions read as params, such as a ConfigMap with limits."`
	FailurePolicy failurePolicy  `yaml:"failurePolicy" default:"Fail" doc:"The outcome if an expression fails, or if nobody answers. Fail: the request is refused. Ignore: the rule does not apply."`
	Enforce       enforcement    `yaml:"enforce" doc:"The place of the rule. policy: the API server evaluates it, as a policy; it is a fault if it cannot. webhook: the operator does. Default: policy if the API server can, else webhook."`
	Timeout       time.Duration  `yaml:"timeout" default:"10s" doc:"For webhooks: how long the API server waits for the operator, 1s to 30s in whole seconds."`
}

// validationRule is a rule that objects must fulfil.
type validationRule struct {
	Rule    form.Predicate      `yaml:"rule" required:"a rule has rule, or call for a function in Go" unless:"call" mistaken:"expression,cel" doc:"The condition that must hold, as in self.spec.replicas <= 5. Variables: self (the object as it would be stored; for a deletion, the object that goes), old (the stored object, null for a creation), request (operation, userInfo, namespace and the like, as admission policies have it), params. With a webhook also related, indexes and now."`
	Call    *called             `yaml:"call" doc:"In the place of rule: the Go function, registered by name for rules about requests, which decides."`
	Message string              `yaml:"message" doc:"The text for the client; may have ${…}. Default: the rule."`
	Reason  reason              `yaml:"reason" default:"Invalid" doc:"The reason for programs, which decides the HTTP status."`
	Action  dsl.AdmissionAction `yaml:"action" default:"deny" doc:"The outcome if the rule does not hold. deny: the request is refused. warn: it is admitted, and the client is warned. audit: it is admitted, and noted in the audit log of the API server."`
	admission
}

// mutationRule is a rule that changes objects.
type mutationRule struct {
	Call *called  `yaml:"call" doc:"In the place of set: the Go function, registered by name for rules about requests, which changes the object."`
	Set  *changes `yaml:"set" required:"a rule has set, or call for a function in Go" unless:"call" doc:"Fields to set: spec, labels, annotations. Values may have ${…}; null removes a field. With when, as in the action set: expressions by the entry that each is about."`
	admission
}

// operation is an operation of requests.
type operation string

// Choices returns the operations.
func (operation) Choices() (string, []string) {
	return "operation", []string{"create", "update", "delete", "connect"}
}

// failurePolicy is the outcome of a request about which nobody can decide.
type failurePolicy string

// Choices returns the policies.
func (failurePolicy) Choices() (string, []string) {
	return "policy", []string{string(registrationv1.Fail), string(registrationv1.Ignore)}
}

// enforcement says who evaluates a rule.
type enforcement string

const (
	byPolicy  enforcement = "policy"
	byWebhook enforcement = "webhook"
)

// Choices returns both.
func (enforcement) Choices() (string, []string) {
	return "enforcement", []string{string(byPolicy), string(byWebhook)}
}

// reason is a reason of a refusal that policies can have.
type reason string

// Choices returns the reasons. The API server's documentation also has Unauthorized, which its validation refuses.
func (reason) Choices() (string, []string) {
	return "reason", []string{string(metav1.StatusReasonForbidden), string(metav1.StatusReasonInvalid), string(metav1.StatusReasonRequestEntityTooLarge)}
}

// paramsObject names the object that a rule reads as params.
type paramsObject struct {
	APIVersion string `yaml:"apiVersion" required:"true" doc:"The version of the object, as in v1."`
	Kind       string `yaml:"kind" required:"true" doc:"The kind of the object, as in ConfigMap."`
	Name       string `yaml:"name" required:"true" doc:"The name of the object."`
	Namespace  string `yaml:"namespace" doc:"The namespace of the object. Absent: the namespace of the request, or none for a cluster-scoped kind."`
	Optional   bool   `yaml:"optional" default:"false" doc:"Whether the rule does not apply if the object does not exist. false: requests are refused."`
}

// operations returns the operations as the API has them.
func (a *admission) operations() (out []admissionv1.Operation) {
	for _, one := range a.Operations {
		out = append(out, admissionv1.Operation(strings.ToUpper(string(one))))
	}
	return out
}

// deletes reports whether the rule is about deletions, and whether it is about nothing else.
func (a *admission) deletes() (some, only bool) {
	for _, one := range a.Operations {
		some = some || one == "delete"
	}
	return some, some && len(a.Operations) == 1
}

// policyVariables maps the variables of the rule to expressions of policies.
func (a *admission) policyVariables() map[string]string {
	out := expr.PolicyVariables()
	if some, only := a.deletes(); only {
		out[expr.Self] = "oldObject"
	} else if some {
		out[expr.Self] = "(object != null ? object : oldObject)"
	}
	if a.Params == nil {
		delete(out, expr.Params)
	}
	return out
}

// ruling is a rule that is being compiled.
type ruling struct {
	*watched
	*admission
	at path
	// policy is the rule as a policy, and hooked says why it cannot be one.
	policy *dsl.Policy
	hooked error
	// conditions are the rule itself and its when.
	conditions []compiled
	// out is the handler.
	out dsl.Handler
}

// admitted adds a resource whose objects the operator only decides about.
func (l *loader) admitted(op *dsl.Operator, p *part, i int) {
	form := &p.form.Admission[i]
	if len(form.Validate)+len(form.Mutate) == 0 {
		return // the fault is reported
	}
	w := newWatched(compiling{p, l, op.Resource(form.Resource, nil), l.lets}, &resource{Resource: form.Resource, Let: form.Let})
	w.at = path("admission").Index(i)
	l.places[w.out] = place{p, w.at}
	w.exists(w.at.Key("resource"), w.out.Name)
	w.resourceLets()
	if s := form.Selector; s != nil {
		w.selector(w.at.Key("selector"), &selector{MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions})
	}
	if s := form.NamespaceSelector; s != nil {
		w.out.NamespaceSelector = p.labelSelector(w.at.Key("namespaceSelector"), &selector{MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions})
		w.inNamespaces(w.at.Key("namespaceSelector"), w.out.Name)
	}
	w.rules(form.Validate, form.Mutate)
}

// rules adds the rules of a resource.
func (w *watched) rules(validate []validationRule, mutate []mutationRule) {
	for i := range mutate {
		w.mutation(w.at.Key("mutate").Index(i), &mutate[i])
	}
	for i := range validate {
		w.validation(w.at.Key("validate").Index(i), &validate[i])
	}
}

// ruling returns a rule that is to be compiled.
func (w *watched) ruling(at path, a *admission) *ruling {
	r := &ruling{watched: w, admission: a, at: at, policy: &dsl.Policy{}}
	r.out = dsl.Handler{ID: a.ID, Labels: a.Labels, Annotations: a.Annotations, Retries: dsl.Unlimited, Timeout: a.Timeout}
	r.out.Admission = &dsl.Admission{
		Operations: a.operations(), Subresources: a.Subresources, FailurePolicy: registrationv1.FailurePolicyType(a.FailurePolicy),
	}
	if p := a.Params; p != nil {
		r.policy.Params = &dsl.PolicyParams{APIVersion: p.APIVersion, Kind: p.Kind, Name: p.Name, Namespace: p.Namespace, Optional: p.Optional}
	}
	self := a.policyVariables()[expr.Self]
	for _, m := range a.Labels {
		r.policy.Conditions = append(r.policy.Conditions, condition(self, "labels", m))
	}
	for _, m := range a.Annotations { // always behind labels: in another order, the policy would be written again
		r.policy.Conditions = append(r.policy.Conditions, condition(self, "annotations", m))
	}
	return r
}

// condition returns a condition on a label or an annotation as policies have it.
func condition(self, field string, m dsl.Match) string {
	key := fmt.Sprintf("has(%s.metadata.%s) && %q in %s.metadata.%s", self, field, m.Key, self, field)
	if strings.HasPrefix(self, "(") { // has() takes a selection of a variable
		key = fmt.Sprintf("%q in %s.metadata.?%s.orValue({})", m.Key, self, field)
	}
	switch m.Op {
	case dsl.Exists:
		return key
	case dsl.Absent:
		return "!(" + key + ")"
	}
	return fmt.Sprintf("%s && %s.metadata.%s[%q] == %q", key, self, field, m.Key, m.Value)
}

// predicate compiles an expression of the rule; nil if it has a fault or is empty.
func (r *ruling) predicate(key, text string) *expr.Program {
	if text == "" {
		return nil
	}
	out := r.watched.predicate(r.at.Key(key), text, nil, r.without(), variable{expr.Request, requestShape})
	if out != nil {
		r.conditions = append(r.conditions, compiled{r.at.Key(key), out})
	}
	return out
}

// without returns the variables that the rule cannot have, each with the reason.
func (r *ruling) without() map[string]string {
	out, known := map[string]string{}, "self, old, request, params, related, indexes, now"
	if r.Params == nil {
		out[expr.Params] = "is not there: the rule names no object under params"
		known = strings.Replace(known, " params,", "", 1)
	}
	for _, name := range []string{expr.Diff, expr.Cause, expr.Event, expr.Handlers, expr.Children} {
		out[name] = "is not known to a rule about requests (want one of " + known + ")"
	}
	return out
}

// translated returns a predicate as policies have it, and notes if that is not possible.
func (r *ruling) translated(p *expr.Program) string {
	text, err := p.PolicyPredicate(r.policyVariables())
	if err != nil && r.hooked == nil {
		r.hooked = err
	}
	return text
}

// filter compiles when. It returns the condition that stands before the rule itself, if the API server cannot evaluate it elsewhere:
// matchConditions have no params.
func (r *ruling) filter() (before string) {
	program := r.predicate("when", string(r.When))
	if program == nil {
		return ""
	}
	r.out.When = program.Predicate("when", nil)
	text := r.translated(program)
	if program.Uses(expr.Params) {
		return text
	}
	r.policy.Conditions = append(r.policy.Conditions, text)
	return ""
}

// add decides who evaluates the rule, and adds it.
func (r *ruling) add(code dsl.AdmissionFunc) {
	r.doubtOld()
	r.out.Admission.Func = code
	if r.hooked == nil && r.Enforce == byWebhook {
		r.hooked = errors.New("enforce says so")
	}
	switch {
	case r.hooked == nil:
		r.out.Admission.Policy = r.policy
	case r.Enforce == byPolicy:
		r.Fault(r.at.Key("enforce"), "the rule cannot be a policy: %v", r.hooked)
	case r.Params != nil:
		r.Fault(r.at.Key("params"), "is for policies, and the rule cannot be one: %v", r.hooked)
	default:
		r.out.Admission.Webhook = r.hooked.Error()
	}
	r.loader.places[r.watched.out.Admit(r.out)] = place{r.part, r.at}
}

// called returns the Go function of a rule. A missing one is a fault.
func (r *ruling) called(c *called) dsl.AdmissionFunc {
	r.hooked = fmt.Errorf("it calls %s", c.name)
	at := r.at.Key("call")
	f, found := r.loader.registry.LookupFunction(c.name)
	switch {
	case c.name == "": // the fault is reported
	case !found && f.Admission == nil:
		known := r.loader.registry.FunctionsThat(func(f dsl.Function) bool { return f.Admission != nil })
		r.Fault(at, "unknown function %q (%s)", c.name, words.Hint(c.name, known))
	case f.Admission == nil:
		r.Fault(at, "function %s is not one for rules about requests", c.name)
	default:
		r.out.Needs = f.Needs
		return f.Admission
	}
	return func(context.Context, *dsl.AdmissionRequest) error { return nil }
}

// validation adds a rule that validates.
func (w *watched) validation(at path, v *validationRule) {
	r := w.ruling(at, &v.admission)
	before := r.filter()
	why := cmp.Or(metav1.StatusReason(v.Reason), metav1.StatusReasonInvalid)
	r.out.Admission.Action, r.policy.Reason = v.Action, why
	if v.Call != nil {
		if v.Rule != "" {
			r.FaultKey(at.Key("rule"), "a rule has one of rule and call")
		}
		if v.Message != "" || v.Reason != "" {
			r.Fault(at, "message and reason are for rule: a function in Go returns its own")
		}
		r.add(r.called(v.Call))
		return
	}
	program := r.predicate("rule", string(v.Rule))
	if program == nil {
		r.add(func(context.Context, *dsl.AdmissionRequest) error { return nil }) // the fault is reported
		return
	}
	r.policy.Expression = r.translated(program)
	if before != "" {
		r.policy.Expression = "!(" + before + ") || (" + r.policy.Expression + ")"
	}
	message := r.message(v.Message, program.Text())
	r.add(func(_ context.Context, of *dsl.AdmissionRequest) error {
		scope := expr.Scope{Subject: &of.Subject}
		holds, err := program.Bool(scope)
		if err != nil {
			return dsl.Undecided(fmt.Errorf("evaluating rule: %w", err))
		}
		if holds {
			return nil
		}
		return dsl.Deny(why, "%s", message(scope))
	})
}

// message compiles the message of a rule. It returns the function that renders it, or the text as it was written if that fails.
func (r *ruling) message(text, rule string) func(expr.Scope) string {
	at := r.at.Key("message")
	if text = strings.TrimSpace(text); strings.Contains(text, "\n") {
		r.Fault(at, "want one line, which is all that the API server takes (write >- in the place of |)")
	}
	if text == "" {
		text = "want " + strings.Join(strings.Fields(rule), " ")
		r.policy.Message = text
		return func(expr.Scope) string { return text }
	}
	compiler, err := r.compiler(expr.Request)
	if err != nil {
		return func(expr.Scope) string { return text } // the faults of expressions say why there is no compiler
	}
	template, err := compiler.Without(r.without()).Template(text)
	if err != nil {
		r.unfit(at, at, err)
		return func(expr.Scope) string { return text }
	}
	r.check(at, at, func(s shape.Schemas) (out []error) {
		s.Vars, s.Without = map[string]shape.Shape{expr.Request: requestShape(s)}, r.without()
		for _, program := range template.Programs() {
			out = append(out, expr.Faults(nil, check.Program(program, s))...)
		}
		return out
	})
	r.policy.Message = text
	if len(template.Programs()) > 0 {
		if r.policy.MessageExpression, err = template.PolicyMessage(r.policyVariables()); err != nil && r.hooked == nil {
			r.hooked = fmt.Errorf("message: %w", err)
		}
	}
	return func(s expr.Scope) string {
		if value, err := template.Render(s); err == nil {
			return fmt.Sprint(value)
		}
		return text
	}
}
