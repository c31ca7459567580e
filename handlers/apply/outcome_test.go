// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// answer is an error of the API server, in the words of the engine.
func answer(code int32, reason metav1.StatusReason, message string, details *metav1.StatusDetails) error {
	return fmt.Errorf("applying Thing ns/a: %w", &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: details,
	}})
}

func causes(list ...metav1.StatusCause) *metav1.StatusDetails {
	return &metav1.StatusDetails{Causes: list}
}

// fixedAt is an error about a field of a kind that cannot be changed.
func fixedAt(kind, group string, cause metav1.StatusCause) error {
	details := causes(cause)
	details.Kind, details.Group = kind, group
	return &dsl.ImmutableError{Answer: answer(422, metav1.StatusReasonInvalid, "x", details), Causes: details.Causes}
}

func TestReasonsSayWhatToDo(t *testing.T) {
	things := schema.GroupResource{Group: "x.io", Resource: "things"}
	tests := map[string]struct {
		err  error
		want string // the condition behind Applied=False
	}{
		"an object without an owner": {
			fmt.Errorf("x: %w", &dsl.NotOwnedError{Resource: "Thing", Namespace: "ns", Name: "a"}),
			"NotOwned: Thing ns/a: it is there and was not made for this object: delete it, give the child another name, or take it over with adopt: ifUnowned",
		},
		"an object of somebody": {
			&dsl.NotOwnedError{Resource: "Thing", Namespace: "ns", Name: "a", Owner: "Foo other"},
			"NotOwned: Thing ns/a: it is there and belongs to Foo other: give the child another name",
		},
		"an object of another owner, with advice": {
			&dsl.NotOwnedError{Resource: "Thing", Namespace: "ns", Name: "a", Owner: "an earlier Foo ns/me", Advice: "it is not garbage-collected: delete it"},
			"NotOwned: Thing ns/a: it is there and belongs to an earlier Foo ns/me; it is not garbage-collected: delete it",
		},
		"an object with advice": {
			&dsl.NotOwnedError{Resource: "Thing", Namespace: "ns", Name: "a", Advice: "it is in no record: delete it"},
			"NotOwned: Thing ns/a: it is there; it is in no record: delete it",
		},
		"an immutable field": {
			fixedAt("Thing", "", metav1.StatusCause{Field: "spec.selector", Message: "Invalid value: {}: field is immutable"}),
			"Immutable: Thing ns/a: spec.selector is immutable: delete it, or give it another name; it is recreated then, as with onImmutable: recreate",
		},
		"fields that may not change": {
			fixedAt("StatefulSet", "apps", metav1.StatusCause{Field: "spec", Message: "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden"}),
			"Immutable: Thing ns/a: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden: delete it, or give it another name; it is recreated then, as with onImmutable: recreate",
		},
		"an immutable field of what holds data": {
			fixedAt("PersistentVolumeClaim", "", metav1.StatusCause{Field: "spec", Message: "Forbidden: spec is immutable after creation"}),
			"Immutable: Thing ns/a: spec: Forbidden: spec is immutable after creation: take the change back, or give the child another name; deleting it loses its data",
		},
		"an immutable field of what may hold data": {
			fixedAt("Database", "example.com", metav1.StatusCause{Field: "spec.engine", Message: "Invalid value: x: field is immutable"}),
			"Immutable: Thing ns/a: spec.engine is immutable: take the change back, or give the child another name; deleting it loses its data",
		},
		"a value that is invalid": {
			answer(422, metav1.StatusReasonInvalid, `Thing.x.io "a" is invalid: spec.n: Invalid value: -1: must be positive`,
				causes(metav1.StatusCause{Field: "spec.n", Message: "Invalid value: -1: must be positive"})),
			`Invalid: Thing ns/a: Thing.x.io "a" is invalid: spec.n: Invalid value: -1: must be positive`,
		},
		"an unknown field": {
			apierrors.NewBadRequest(`strict decoding error: unknown field "spec.x"`),
			`Invalid: Thing ns/a: strict decoding error: unknown field "spec.x"`,
		},
		"a field that the kind does not have": {
			answer(500, "", "failed to create typed patch object (ns/a; x.io/v1, Kind=Thing): .dada: field not declared in schema", nil),
			"Invalid: Thing ns/a: .dada: field not declared in schema",
		},
		"a value of another type, which is not shown: it may be secret": {
			answer(500, "", "failed to create typed patch object (ns/a; /v1, Kind=Secret): .data.pin: expected string, got &{1234}", nil),
			"Invalid: Thing ns/a: .data.pin: expected string",
		},
		"several values of another type": {
			answer(500, "", "failed to create typed patch object (ns/a; /v1, Kind=Secret): errors:\n  .stringData.pin: expected string, got &value.valueUnstructured{Value:1234}\n  .stringData.x: expected string, got &value.valueUnstructured{Value:true}", nil),
			"Invalid: Thing ns/a: .stringData.pin: expected string, .stringData.x: expected string",
		},
		"a value that cannot be read": {
			answer(500, "", "failed to convert new object (ns/a; /v1, Kind=Secret) to proper version: illegal base64 data at input byte 0", nil),
			"Invalid: Thing ns/a: failed to convert new object (ns/a; /v1, Kind=Secret) to proper version: illegal base64 data at input byte 0",
		},
		"words that sound as if a field could not be changed, of a value that is invalid": {
			answer(422, metav1.StatusReasonInvalid, "spec.n: Invalid value: field is immutable",
				causes(metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.n", Message: "Invalid value: field is immutable"})),
			"Invalid: Thing ns/a: spec.n: Invalid value: field is immutable",
		},
		"a right that is missing": {
			apierrors.NewForbidden(things, "a", errors.New(`User "op" cannot patch resource "things"`)),
			`Forbidden: Thing ns/a: things.x.io "a" is forbidden: User "op" cannot patch resource "things": allow it to the operator`,
		},
		"rights that may not be given away": {
			apierrors.NewForbidden(things, "a", errors.New("user \"op\" is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}\n{APIGroups:[\"apps\"], Resources:[\"deployments\"], Verbs:[\"get\"]}")),
			`Forbidden: Thing ns/a: things.x.io "a" is forbidden: user "op" is attempting to grant RBAC permissions not currently held: ` +
				`{APIGroups:[""], Resources:["pods"], Verbs:["get"]}, {APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}: allow it to the operator`,
		},
		"a quota that is used up": {
			apierrors.NewForbidden(things, "a", errors.New("exceeded quota: q, requested: pods=1,cpu=2, used: pods=3,cpu=4, limited: pods=3,cpu=9")),
			"QuotaExceeded: Thing ns/a: exceeded quota: q, requested: pods=1,cpu=2, limited: pods=3,cpu=9: raise the quota, or free some of it",
		},
		"a webhook that says no": {
			answer(403, metav1.StatusReasonForbidden, `admission webhook "w.example.com" denied the request: no latest tag`, nil),
			`Denied: Thing ns/a: admission webhook "w.example.com" denied the request: no latest tag`,
		},
		"a policy that says no": {
			answer(422, metav1.StatusReasonInvalid, `things.x.io "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too big`, nil),
			`Denied: Thing ns/a: things.x.io "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too big`,
		},
		"a namespace that ends": {
			answer(403, metav1.StatusReasonForbidden, "x", causes(metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})),
			"NamespaceMissing: Thing ns/a: its namespace is being deleted: nothing can be made in it",
		},
		"a namespace that is not there": {
			answer(404, metav1.StatusReasonNotFound, "x", &metav1.StatusDetails{Kind: "namespaces", Name: "ns"}),
			"NamespaceMissing: Thing ns/a: there is no namespace ns: create it",
		},
		"fields of other managers": {
			answer(http.StatusConflict, metav1.StatusReasonConflict, "Apply failed with 3 conflicts: conflicts with \"kubectl\":\n- .spec.n\n- .spec.m\nconflicts with \"hpa\" using v2:\n- .spec.o", nil),
			`Conflict: Thing ns/a: Apply failed with 3 conflicts: conflicts with "kubectl": .spec.n, .spec.m, conflicts with "hpa" using v2: .spec.o`,
		},
		"a text of several lines": {
			answer(500, "", "it is down\ngoroutine 1 [running]:\nmain.main()", nil),
			"ApplyFailed: Thing ns/a: it is down",
		},
		"a field of another manager": {
			answer(http.StatusConflict, metav1.StatusReasonConflict, `Apply failed with 1 conflict: conflict with "kubectl": .spec.n`, nil),
			`Conflict: Thing ns/a: Apply failed with 1 conflict: conflict with "kubectl": .spec.n`,
		},
		"a server that has a bad day": {
			apierrors.NewInternalError(errors.New("etcd is gone\nwith a trace")),
			"ApplyFailed: Thing ns/a: Internal error occurred: etcd is gone",
		},
		"anything else": {errBroken, "ApplyFailed: Thing ns/a: broken"},
		"a long story":  {errors.New(strings.Repeat("ä", 1000)), "ApplyFailed: Thing ns/a: " + strings.Repeat("ä", 300) + "…"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := start(t, "{a: {"+thing+"{name: a}}}", "{}")
			w.refused["Thing a"] = test.err
			err := w.run(dsl.Create)
			if want := "Applied=False " + test.want; w.said() != want {
				t.Errorf("condition\n%s\nwant\n%s", w.said(), want)
			}
			if want := "Warning " + test.want; len(w.events) != 1 || w.events[0] != want {
				t.Errorf("events %q", w.events)
			}
			if _, waits := dsl.IsWaiting(err); waits || err == nil || dsl.IsPermanent(err) {
				t.Errorf("error %v: want one that is tried again", err)
			}
		})
	}
}

func TestWhenAFailureIsTriedAgain(t *testing.T) {
	temporary := func(after time.Duration) error { return dsl.Temporary(errBroken, after) }
	tests := map[string]struct {
		a, b      error
		slow      bool
		permanent bool
		after     time.Duration
		waiting   bool
	}{
		"what is final is final":                     {a: dsl.Permanent(errBroken), permanent: true},
		"but not while something else may come":      {a: dsl.Permanent(errBroken), b: errBroken},
		"nor while something is waited for":          {a: dsl.Permanent(errBroken), slow: true},
		"one that asks for a time gets it":           {a: temporary(time.Hour), after: time.Hour},
		"the shortest of several counts":             {a: temporary(time.Hour), b: temporary(time.Minute), after: time.Minute},
		"the others' back-off counts before it":      {a: temporary(time.Hour), b: errBroken},
		"an object that is waited for is no failure": {a: dsl.Waiting("its kind to be served", time.Second), waiting: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := start(t, "{a: {"+thing+"{name: a}}, b: {"+thing+"{name: b}}, c: {readyWhen: child.status.ready, template: {"+thing+"{name: c}}}}", "{}")
			w.refused["Thing a"], w.refused["Thing b"], w.slow["Thing c"] = test.a, test.b, test.slow
			err := w.run(dsl.Create)
			after, isTemporary := dsl.IsTemporary(err)
			if dsl.IsPermanent(err) != test.permanent || after != test.after || isTemporary != (test.after > 0) {
				t.Errorf("%v: permanent %v, temporary %v after %s", err, dsl.IsPermanent(err), isTemporary, after)
			}
			most, waits := dsl.IsWaiting(err)
			if waits != test.waiting || waits && (most != time.Second || err.Error() != "waiting for Thing ns/a: its kind to be served") {
				t.Errorf("%v: waiting %v, %s", err, waits, most)
			}
		})
	}
}

// TestWhoAsksKnowsAMissingRight holds that the error of what failed for one reason is known by its cause,
// and that of what a policy denies is not taken for a right that may be given.
func TestWhoAsksKnowsAMissingRight(t *testing.T) {
	things := schema.GroupResource{Resource: "things"}
	refusal := apierrors.NewForbidden(things, "a", errors.New(`User "u" cannot patch resource "things" in API group ""`))
	denial := apierrors.NewForbidden(things, "a", errors.New("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"))
	tests := map[string]struct {
		a, b      error
		forbidden bool
	}{
		"a right":                        {a: refusal, forbidden: true},
		"the same twice":                 {a: refusal, b: refusal, forbidden: true},
		"not beside something else":      {a: refusal, b: errBroken},
		"a quota is no right":            {a: denial},
		"one that is final stays so":     {a: dsl.Permanent(refusal)},
		"when to try again is not known": {a: dsl.Temporary(refusal, time.Hour)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := start(t, "{a: {"+thing+"{name: a}}, b: {"+thing+"{name: b}}}", "{}")
			w.refused["Thing a"], w.refused["Thing b"] = test.a, test.b
			if err := w.run(dsl.Create); err == nil || apierrors.IsForbidden(err) != test.forbidden {
				t.Errorf("the error is %v; forbidden: %v", err, apierrors.IsForbidden(err))
			}
		})
	}
}

// TestWhatIsWaitedForIsNamedOnce holds that an object that the error names already is not named again.
func TestWhatIsWaitedForIsNamedOnce(t *testing.T) {
	w := start(t, "{a: {"+thing+"{name: a}}}", "{}")
	w.refused["Thing a"] = dsl.Waiting("Thing ns/a of an earlier Foo ns/me to be collected", 0)
	err := w.run(dsl.Create)
	if _, waits := dsl.IsWaiting(err); !waits || w.said() != "Applied=False Waiting: Waiting for Thing ns/a of an earlier Foo ns/me to be collected." {
		t.Errorf("%v, condition %s", err, w.said())
	}
}

func TestTheReportIsTheSameEachTime(t *testing.T) {
	w := start(t, "{a: {forEach: '${self.spec.l}', template: {"+thing+"{name: '${item}'}}}}", "{l: [i, h, g, f, e, d, c, b]}")
	for _, name := range []string{"b", "c", "d", "e", "f", "g", "h"} {
		w.refused["Thing "+name] = errBroken
	}
	want := "Applied=False ApplyFailed: Thing ns/b: broken; Thing ns/c: broken; Thing ns/d: broken; Thing ns/e: broken; Thing ns/f: broken and 2 more"
	for range 3 {
		if err := w.run(dsl.Update); err == nil || w.said() != want {
			t.Errorf("condition\n%s\nwant\n%s", w.said(), want)
		}
	}
}
