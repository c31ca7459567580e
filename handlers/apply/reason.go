// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expiry"
)

// The reasons of the condition and of the Event.
const (
	reasonAllApplied    = "AllApplied"
	reasonWaiting       = "Waiting"
	reasonFiltered      = "Filtered"
	reasonNotOwned      = "NotOwned"
	reasonNameCollision = "NameCollision"
	reasonImmutable     = "Immutable"
	reasonInvalid       = "Invalid"
	reasonDenied        = "Denied"
	reasonForbidden     = "Forbidden"
	reasonQuota         = "QuotaExceeded"
	reasonConflict      = "Conflict"
	reasonNamespace     = "NamespaceMissing"
	reasonUnresolved    = "Unresolved"
	reasonTooMany       = "TooMany"
	reasonTooLarge      = "TooLarge"
	reasonFailed        = "ApplyFailed"
)

// reasons returns all reasons.
func reasons() []string {
	return []string{
		reasonAllApplied, reasonWaiting, reasonFiltered, reasonNotOwned, reasonNameCollision, reasonImmutable, reasonInvalid, reasonDenied, reasonForbidden,
		reasonQuota, reasonConflict, reasonNamespace, reasonUnresolved, reasonTooMany, reasonTooLarge, reasonFailed,
	}
}

// verdict is an error with its reason.
type verdict struct {
	reason string
	err    error
}

func (v *verdict) Error() string { return v.err.Error() }
func (v *verdict) Unwrap() error { return v.err }

func wrong(reason, format string, args ...any) error {
	return &verdict{reason: reason, err: fmt.Errorf(format, args...)}
}

// explain returns the reason for an error, and a text for people on the problem and its solution. The text is the
// same for each attempt.
func explain(err error) (reason, text string) {
	if v, ok := errors.AsType[*verdict](err); ok {
		return v.reason, short(err.Error())
	}
	if found, ok := errors.AsType[*dsl.NotOwnedError](err); ok {
		return reasonNotOwned, notOwned(found)
	}
	if rival, ok := errors.AsType[*dsl.CollisionError](err); ok {
		return reasonNameCollision, fmt.Sprintf("handler %s keeps it, too, and otherwise: give each a child of its own", rival.Handler)
	}
	if data, ok := errors.AsType[*dsl.DataError](err); ok {
		return reasonInvalid, data.Error()
	}
	if expiring, ok := errors.AsType[*expiry.Error](err); ok {
		return reasonInvalid, expiring.Error()
	}
	if errors.Is(err, dsl.ErrNotOwned) {
		return reasonNotOwned, short(err.Error())
	}
	if answer := apierrors.APIStatus(nil); errors.As(err, &answer) {
		immutable, fixes := errors.AsType[*dsl.ImmutableError](err)
		withheld, quiet := errors.AsType[*dsl.WithheldError](err)
		switch {
		case fixes && quiet:
			return reasonImmutable, fixed(immutable.Places(), answer.Status().Details)
		case fixes:
			return reasonImmutable, fixed(immutable.Fields(), answer.Status().Details)
		case quiet:
			reason, _ = refused(answer.Status())
			return reason, short(withheld.Error())
		}
		return refused(answer.Status())
	}
	return reasonFailed, short(err.Error())
}

func notOwned(err *dsl.NotOwnedError) string {
	switch {
	case err.Owner != "" && err.Advice != "":
		return fmt.Sprintf("it is there and belongs to %s; %s", err.Owner, err.Advice)
	case err.Advice != "":
		return "it is there; " + err.Advice
	case err.Owner != "":
		return fmt.Sprintf("it is there and belongs to %s: give the child another name", err.Owner)
	}
	return "it is there and was not made for this object: delete it, give the child another name, or take it over with adopt: ifUnowned"
}

// refused explains an error of the API server.
func refused(s metav1.Status) (reason, text string) {
	message := short(s.Message)
	switch {
	case strings.Contains(s.Message, "exceeded quota"):
		return reasonQuota, quota(s.Message) + ": raise the quota, or free some of it"
	case deniedByPolicy(s.Message):
		return reasonDenied, message
	case misshapen(s.Message):
		return reasonInvalid, stripped(s.Message)
	case ending(s):
		return reasonNamespace, "its namespace is being deleted: nothing can be made in it"
	case s.Reason == metav1.StatusReasonNotFound && s.Details != nil && s.Details.Kind == "namespaces":
		return reasonNamespace, fmt.Sprintf("there is no namespace %s: create it", s.Details.Name)
	}
	switch s.Reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonRequestEntityTooLarge:
		return reasonInvalid, message
	case metav1.StatusReasonForbidden, metav1.StatusReasonUnauthorized:
		const advice = "allow it to the operator"
		if !strings.Contains(message, advice) {
			message += ": " + advice
		}
		return reasonForbidden, message
	case metav1.StatusReasonConflict, metav1.StatusReasonAlreadyExists:
		return reasonConflict, message
	}
	return reasonFailed, message
}

// deniedByPolicy reports whether an admission webhook or policy has denied the request. Its own message explains
// best what to do.
func deniedByPolicy(message string) bool {
	for _, words := range []string{"denied the request", "denied request", "violates PodSecurity"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// misshapen reports whether the API server could not decode the request as an object of the kind. Such an error has
// no reason of its own.
func misshapen(message string) bool {
	return strings.Contains(message, "failed to create typed patch object") || strings.Contains(message, "failed to convert new object")
}

// stripped removes the name of the object, which the text has already, and the values that were sent, which may be
// secret.
func stripped(message string) string {
	if _, rest, found := strings.Cut(message, "): "); found {
		message = rest
	}
	var faults []string // if there are several, each is on its own line
	for line := range strings.Lines(strings.TrimPrefix(message, "errors:")) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), ", got &")
		if line != "" {
			faults = append(faults, line)
		}
	}
	return short(strings.Join(faults, ", "))
}

func ending(s metav1.Status) bool {
	if s.Details == nil {
		return false
	}
	for _, cause := range s.Details.Causes {
		if cause.Type == corev1.NamespaceTerminatingCause {
			return true
		}
	}
	return false
}

// quota removes the current usage, because it changes between attempts.
func quota(message string) string {
	_, message, _ = strings.Cut(message, "exceeded quota")
	before, rest, _ := strings.Cut(message, ", used: ")
	if _, limited, found := strings.Cut(rest, ", limited: "); found {
		before += ", limited: " + limited
	}
	return short("exceeded quota" + before)
}

// fixed names the immutable fields and a solution. It does not advise to delete objects that may hold data, which
// includes all kinds of CRDs.
func fixed(fields []string, of *metav1.StatusDetails) string {
	for i, field := range fields {
		fields[i] = short(field)
	}
	text := strings.Join(fields, ", ")
	holds := []string{"PersistentVolumeClaim", "PersistentVolume", "Secret", "Namespace", "CustomResourceDefinition"}
	if slices.Contains(holds, of.Kind) || strings.Contains(of.Group, ".") && !strings.HasSuffix(of.Group, ".k8s.io") {
		return text + ": take the change back, or give the child another name; deleting it loses its data"
	}
	return text + ": delete it, or give it another name; it is recreated then, as with onImmutable: recreate"
}

// short shortens a text to one line: its first line, and the following lines if the first is a heading that ends in
// a colon.
func short(text string) string {
	const most = 600
	text, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if text = strings.TrimSpace(text); strings.HasSuffix(text, ":") {
		for line := range strings.Lines(rest) {
			separator := ", "
			if strings.HasSuffix(text, ":") {
				separator = " "
			}
			text += separator + strings.TrimPrefix(strings.TrimSpace(line), "- ")
			if len(text) > most {
				break
			}
		}
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
