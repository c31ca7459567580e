// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RequestVariable is the name in [Subject.Vars] of the request itself, with the fields that admission policies see as request.
const RequestVariable = "request"

// AdmissionFunc decides about a request before the API server stores the object. A nil error admits the object. An error
// of [Deny] or of the API machinery refuses it with its reason; any other error refuses it as forbidden, with its text.
//
// It runs in every replica, leader or not, and several times for one request if the API server calls again. It must be
// quick, because the client waits, and must have no effects outside of the request.
type AdmissionFunc func(ctx context.Context, r *AdmissionRequest) error

// AdmissionRequest is a request to write an object, before the API server stores it.
type AdmissionRequest struct {
	// Subject has the object as it would be stored; for a deletion, the object that is being deleted. Old is the stored
	// object, nil for a creation, and Diff the difference between the two. Indexes and Related read caches, which may
	// be a moment behind.
	Subject
	// Patch has the changes that a function of [Resource.Mutate] wants in the object. Those of status are ignored.
	Patch *Patch
	// Operation is what the request does.
	Operation admissionv1.Operation
	// Subresource is the subresource of the request, as status; mostly empty.
	Subresource string
	// User sent the request.
	User authenticationv1.UserInfo
	// DryRun: the object will not be stored.
	DryRun bool
	// Warnings are shown to the client, whether the request is admitted or not. See [AdmissionRequest.Warn].
	Warnings []string
}

// Warn adds a warning for the client, formatted as by fmt.Sprintf. kubectl prints it.
func (r *AdmissionRequest) Warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// Deny returns an error that refuses a request. The reason is one of the API machinery, as [metav1.StatusReasonInvalid]. The message
// for people is formatted as by fmt.Sprintf.
func Deny(reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Reason: reason, Message: fmt.Sprintf(format, args...), Code: codeOf(reason),
	}}
}

// codeOf returns the HTTP status code that the API machinery has for a reason; 400 for others.
func codeOf(reason metav1.StatusReason) int32 {
	switch reason {
	case metav1.StatusReasonUnauthorized:
		return 401
	case metav1.StatusReasonForbidden:
		return 403
	case metav1.StatusReasonNotFound:
		return 404
	case metav1.StatusReasonConflict, metav1.StatusReasonAlreadyExists:
		return 409
	case metav1.StatusReasonRequestEntityTooLarge:
		return 413
	case metav1.StatusReasonInvalid:
		return 422
	case metav1.StatusReasonTooManyRequests:
		return 429
	case metav1.StatusReasonInternalError:
		return 500
	}
	return 400
}

// Undecided marks an error of an [AdmissionFunc] that could not decide, as when something cannot be read. The handler's
// [FailurePolicy] then decides about the request. If it refuses, the reason is Invalid unless err has one, as for an
// admission policy that fails. Undecided(nil) is nil.
func Undecided(err error) error {
	if err == nil {
		return nil
	}
	return &undecidedError{err}
}

// IsUndecided reports whether err, or an error it wraps, came from [Undecided].
func IsUndecided(err error) bool {
	_, is := errors.AsType[*undecidedError](err)
	return is
}

type undecidedError struct{ error }

// Unwrap returns the error.
func (e *undecidedError) Unwrap() error { return e.error }

// Denial returns the status that a client gets for an error of an [AdmissionFunc].
func Denial(err error) metav1.Status {
	var of apierrors.APIStatus
	if errors.As(err, &of) {
		return of.Status()
	}
	return metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: err.Error(), Code: codeOf(metav1.StatusReasonForbidden)}
}

// AdmissionAction is the outcome of a request that a validation refuses.
type AdmissionAction string

// The actions.
const (
	// ActionDeny refuses the request. The default.
	ActionDeny AdmissionAction = "deny"
	// ActionWarn admits the request and warns the client.
	ActionWarn AdmissionAction = "warn"
	// ActionAudit admits the request, and notes it in the audit log of the API server.
	ActionAudit AdmissionAction = "audit"
)

// Choices returns the actions.
func (AdmissionAction) Choices() (what string, words []string) {
	return "action", []string{string(ActionDeny), string(ActionWarn), string(ActionAudit)}
}

// Admission has the fields of a [Handler] that decides about requests.
type Admission struct {
	// Mutates: the handler may change the object, and runs before those that only validate.
	Mutates bool
	// Func decides. Required, also if the API server runs Policy in its place.
	Func AdmissionFunc
	// Operations are the requests that the handler decides about. Defaults to creations and updates.
	Operations []admissionv1.Operation
	// Subresources are those that the handler decides about instead of the object itself, as status or scale.
	Subresources []string
	// FailurePolicy is the outcome of a request about which nobody can decide. Defaults to Fail.
	FailurePolicy registrationv1.FailurePolicyType
	// Action is the outcome of a request that the handler refuses. Defaults to ActionDeny.
	Action AdmissionAction
	// Policy is the handler in the API server's own CEL. Nil means that only the operator can decide, by a webhook;
	// Webhook then says why, as in "it reads related".
	Policy  *Policy
	Webhook string
}

// Policy is a rule that the API server evaluates itself, without a webhook. Its expressions are CEL of admission policies.
type Policy struct {
	// Conditions must all hold for the rule to apply.
	Conditions []string
	// Expression must hold, or the request is refused. Empty for a rule that changes the object.
	Expression string
	// Message is for people. MessageExpression, when set, computes it.
	Message, MessageExpression string
	// Reason is that of the refusal. Empty means Invalid.
	Reason metav1.StatusReason
	// Changes is an expression that gives a list of JSON patch operations. Empty for a rule that validates.
	Changes string
	// Variables are named expressions, which Expression, MessageExpression, Changes and later variables read.
	Variables []PolicyVariable
	// Params is the object that expressions know as params; nil without one.
	Params *PolicyParams
}

// PolicyVariable is a named expression of a policy. Others read it as variables.NAME.
type PolicyVariable struct{ Name, Expression string }

// PolicyParams names the object that the expressions of a policy read as params.
type PolicyParams struct {
	// APIVersion and Kind are those of the object.
	APIVersion, Kind string
	// Name is its name. Namespace is empty for cluster-scoped objects, and for those in the namespace of the request.
	Name, Namespace string
	// Optional: if the object does not exist, the rule does not apply. Otherwise the request is refused.
	Optional bool
}

// AllOperations returns the operations that requests have.
func AllOperations() []admissionv1.Operation {
	return []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect}
}

// Operations sets the operations that an admission handler decides about. By default it decides about creations and updates.
func Operations(list ...admissionv1.Operation) Option {
	return admissionOption("operations", func(a *Admission) { a.Operations = list })
}

// Subresources makes an admission handler decide about subresources, as "status" or "scale", instead of the object itself.
func Subresources(names ...string) Option {
	return admissionOption("subresources", func(a *Admission) { a.Subresources = names })
}

// FailurePolicy sets the outcome of a request if an admission handler cannot be reached, or does not answer in time. By
// default, Fail, the request is refused.
func FailurePolicy(policy registrationv1.FailurePolicyType) Option {
	return admissionOption("failurePolicy", func(a *Admission) { a.FailurePolicy = policy })
}

func admissionOption(field string, set func(*Admission)) Option {
	return func(h *Handler) {
		if h.Admission == nil {
			h.invalid = append(h.invalid, Fault{Place: Place{Field: field}, Err: errors.New("is only for admission handlers")})
			return
		}
		set(h.Admission)
	}
}

// Validate adds an admission handler: it decides whether the API server stores an object. It runs for creations and updates
// unless [Operations] says otherwise. Filters ([Label], [When] and the like) limit it. The handler runs after all
// handlers that change the object. It panics when fn is nil.
func (r *Resource) Validate(id string, fn AdmissionFunc, options ...Option) {
	r.admit(id, &Admission{Func: fn}, options)
}

// Mutate is [Resource.Validate] for a handler that may change the object by Patch before it is stored. It must come to
// the same result if it runs again with the result.
func (r *Resource) Mutate(id string, fn AdmissionFunc, options ...Option) {
	r.admit(id, &Admission{Func: fn, Mutates: true}, options)
}

func (r *Resource) admit(id string, a *Admission, options []Option) {
	h := Handler{ID: id, Admission: a, Retries: Unlimited}
	for _, set := range options {
		set(&h)
	}
	a.Webhook = "it is code in Go"
	r.Admit(h)
}

// Admit adds an admission handler, as [Resource.Validate] and [Resource.Mutate] do. It returns the added handler.
func (r *Resource) Admit(h Handler) *Handler {
	if h.Admission == nil || h.Admission.Func == nil {
		panic("dsl: admission handler " + h.ID + " of " + r.Name.String() + " has a nil function")
	}
	a := h.Admission
	if len(a.Operations) == 0 {
		a.Operations = []admissionv1.Operation{admissionv1.Create, admissionv1.Update}
	}
	if a.FailurePolicy == "" {
		a.FailurePolicy = registrationv1.Fail
	}
	if a.Action == "" {
		a.Action = ActionDeny
	}
	h.of = r
	r.admissions = append(r.admissions, &h)
	return &h
}

// Admissions returns the admission handlers in declared order, those that change objects first. The slice is the caller's.
func (r *Resource) Admissions() []*Handler {
	out := slices.Clone(r.admissions)
	slices.SortStableFunc(out, func(a, b *Handler) int {
		if a.Admission.Mutates == b.Admission.Mutates {
			return 0
		}
		if a.Admission.Mutates {
			return -1
		}
		return 1
	})
	return out
}

// Hooked reports whether only the operator can decide for the handler, so that it needs a webhook.
func (a *Admission) Hooked() bool { return a.Policy == nil }

// NeedsWebhooks reports whether the API server asks the operator about requests, or to convert objects, so that it must reach the
// operator.
func (op *Operator) NeedsWebhooks() bool {
	return slices.ContainsFunc(op.resources, func(r *Resource) bool {
		return r.Converts() || slices.ContainsFunc(r.admissions, func(h *Handler) bool { return h.Admission.Hooked() })
	})
}

// TypedAdmissionRequest is an [AdmissionRequest] with the object decoded into the author's type. See [TypedAdmission].
type TypedAdmissionRequest[T any] struct {
	*AdmissionRequest
	// Object is the object, decoded. Changes by a function of [Resource.Mutate] are those of its Patch; see [Typed].
	Object *T
	// Old is the stored object, decoded; nil for a creation.
	Old *T
}

// TypedAdmission makes an [AdmissionFunc] of a function that gets its object in the author's type, as [Typed] does for handlers.
func TypedAdmission[T any](fn func(context.Context, *TypedAdmissionRequest[T]) error) AdmissionFunc {
	return func(ctx context.Context, r *AdmissionRequest) error {
		run := Typed(func(ctx context.Context, typed *TypedRequest[T]) error {
			return fn(ctx, &TypedAdmissionRequest[T]{AdmissionRequest: r, Object: typed.Object, Old: typed.Old})
		})
		return run(ctx, &Request{Subject: r.Subject, Patch: r.Patch})
	}
}
