// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// failure is one failure.
type failure struct {
	reason, text string
	err          error
}

// wait is one wait, with its longest time; zero means the default.
type wait struct {
	text string
	most time.Duration
}

// result has the failures and waits of a reconcile, or of a part of it.
type result struct {
	failures []failure
	waits    []wait
	// left are the objects that stay as they are although their templates have changed, by the reason.
	left map[string][]string
}

// fail notes an error with its label. An error of [dsl.Waiting] is noted as a wait.
func (r *result) fail(label string, err error) {
	if most, waits := dsl.IsWaiting(err); waits {
		what := strings.TrimPrefix(err.Error(), "waiting for ")
		if !strings.HasPrefix(what, label) { // such as an object's name
			what = label + ": " + what
		}
		r.wait(most, "%s", what)
		return
	}
	reason, text := explain(err)
	r.failures = append(r.failures, failure{reason: reason, text: label + ": " + text, err: err})
}

// wait notes a wait.
func (r *result) wait(most time.Duration, format string, args ...any) {
	r.waits = append(r.waits, wait{text: fmt.Sprintf(format, args...), most: most})
}

// add adds the result of a part.
func (r *result) add(part result) {
	r.failures = append(r.failures, part.failures...)
	r.waits = append(r.waits, part.waits...)
	for why, labels := range part.left {
		r.leave(why, labels...)
	}
}

// outdated notes an object that stays as it is although its template has changed.
func (r *result) outdated(o *object) {
	if o.outdated != "" {
		r.leave(o.outdated, o.label())
	}
}

func (r *result) leave(why string, labels ...string) {
	if r.left == nil {
		r.left = map[string][]string{}
	}
	r.left[why] = append(r.left[why], labels...)
}

// notes says which objects stay as they are, in a fixed order.
func (r result) notes() string {
	var out strings.Builder
	for _, why := range slices.Sorted(maps.Keys(r.left)) {
		labels := slices.Sorted(slices.Values(r.left[why]))
		fmt.Fprintf(&out, " Not updated, %s: %s.", why, listed(labels, ", "))
	}
	return out.String()
}

// quiet reports whether nothing failed and nothing waits.
func (r result) quiet() bool { return len(r.failures) == 0 && len(r.waits) == 0 }

// summary returns the condition for people, and the error for the engine. Objects is the number of desired objects.
func (r result) summary(objects int) (metav1.Condition, error) {
	switch {
	case len(r.failures) > 0:
		return r.failed()
	case len(r.waits) > 0:
		return r.waiting()
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonAllApplied, Message: applied(objects) + r.notes()}, nil
}

func applied(n int) string {
	switch n {
	case 0:
		return "There is nothing to apply."
	case 1:
		return "The child is applied."
	}
	return fmt.Sprintf("All %d children are applied.", n)
}

// waiting returns the summary if the handler waits, and nothing has failed.
func (r result) waiting() (metav1.Condition, error) {
	var texts []string
	most := time.Duration(0)
	for _, w := range r.waits {
		texts = append(texts, w.text)
		if w.most > 0 && (most == 0 || w.most < most) {
			most = w.most
		}
	}
	slices.Sort(texts)
	what := listed(slices.Compact(texts), ", ")
	condition := metav1.Condition{Status: metav1.ConditionFalse, Reason: reasonWaiting, Message: "Waiting for " + what + "."}
	return condition, dsl.Waiting(what, most)
}

// failed returns the summary of the failures in a fixed order, because an unchanged report is not written again.
func (r result) failed() (metav1.Condition, error) {
	slices.SortFunc(r.failures, func(a, b failure) int {
		return cmp.Or(strings.Compare(a.text, b.text), strings.Compare(a.reason, b.reason))
	})
	var texts []string
	for _, f := range r.failures {
		texts = append(texts, f.text)
	}
	condition := metav1.Condition{
		Status: metav1.ConditionFalse, Reason: r.failures[0].reason, Message: listed(slices.Compact(texts), "; "),
	}
	return condition, r.verdict(&failedError{condition.Message, r.commonCause()})
}

// failedError has all failures in one text.
type failedError struct {
	text  string
	cause error // nil if there are several
}

func (e *failedError) Error() string { return e.text }
func (e *failedError) Unwrap() error { return e.cause }

// commonCause returns the error of one failure if all failures are of its kind, so that the engine recognises an
// unreachable server or a missing right; nil otherwise. It returns the refusal of a namespace that is being deleted in
// any case, because the engine knows which namespace ends the handler. It does not return errors that say when to retry, because
// verdict decides that. A denial that is not about a right must not wake the handler when rights change.
func (r result) commonCause() error {
	first := r.failures[0]
	for _, f := range r.failures {
		if apierrors.HasStatusCause(f.err, corev1.NamespaceTerminatingCause) {
			return f.err
		}
	}
	for _, f := range r.failures {
		_, temporary := dsl.IsTemporary(f.err)
		if f.reason != first.reason || temporary || dsl.IsPermanent(f.err) || f.reason == reasonQuota || f.reason == reasonDenied {
			return nil
		}
	}
	return first.err
}

// verdict adds to an error when to retry. It is permanent only if the failure of every child is: a permanent error
// of one child must not stop the others.
func (r result) verdict(err error) error {
	permanent, temporary, after := len(r.waits) == 0, true, time.Duration(-1)
	for _, f := range r.failures {
		permanent = permanent && dsl.IsPermanent(f.err)
		wanted, asked := dsl.IsTemporary(f.err)
		temporary = temporary && asked
		if after < 0 || wanted < after {
			after = wanted
		}
	}
	switch {
	case permanent:
		return dsl.Permanent(err)
	case temporary:
		return dsl.Temporary(err, after)
	}
	return err
}

// listed joins texts; if there are many, only the first ones.
func listed(texts []string, separator string) string {
	const most = 5
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], separator), len(texts)-most)
}
