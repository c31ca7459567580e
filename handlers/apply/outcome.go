// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

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

// fail notes an error with its label. An error of [dsl.Waiting] is noted as a wait.
func (p *pass) fail(label string, err error) {
	if most, waits := dsl.IsWaiting(err); waits {
		what := strings.TrimPrefix(err.Error(), "waiting for ")
		if !strings.HasPrefix(what, label) { // such as an object's name
			what = label + ": " + what
		}
		p.wait(most, "%s", what)
		return
	}
	reason, text := explain(err)
	p.failures = append(p.failures, failure{reason: reason, text: label + ": " + text, err: err})
}

// wait notes a wait.
func (p *pass) wait(most time.Duration, format string, args ...any) {
	p.waits = append(p.waits, wait{text: fmt.Sprintf(format, args...), most: most})
}

// outcome reports the result to people, and to the engine.
func (p *pass) outcome() error {
	switch {
	case len(p.failures) > 0:
		return p.failed()
	case len(p.waits) > 0:
		return p.waiting()
	case p.r.Cause != dsl.Delete:
		p.tell(metav1.ConditionTrue, reasonAllApplied, applied(len(p.taken)))
	}
	return nil
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

// waiting reports that the handler waits, and that nothing has failed.
func (p *pass) waiting() error {
	var texts []string
	most := time.Duration(0)
	for _, w := range p.waits {
		texts = append(texts, w.text)
		if w.most > 0 && (most == 0 || w.most < most) {
			most = w.most
		}
	}
	slices.Sort(texts)
	what := listed(slices.Compact(texts), ", ")
	p.tell(metav1.ConditionFalse, reasonWaiting, "Waiting for "+what+".")
	return dsl.Waiting(what, most)
}

// failed reports the failures in a fixed order, because an unchanged report is not written again.
func (p *pass) failed() error {
	slices.SortFunc(p.failures, func(a, b failure) int {
		return cmp.Or(strings.Compare(a.text, b.text), strings.Compare(a.reason, b.reason))
	})
	var texts []string
	for _, f := range p.failures {
		texts = append(texts, f.text)
	}
	reason, message := p.failures[0].reason, listed(slices.Compact(texts), "; ")
	p.tell(metav1.ConditionFalse, reason, message)
	p.r.Events.Event(dsl.Warning, reason, "%s", message)
	return p.verdict(&failedError{message, p.commonCause()})
}

// failedError has all failures in one text.
type failedError struct {
	text  string
	cause error // nil if there are several
}

func (e *failedError) Error() string { return e.text }
func (e *failedError) Unwrap() error { return e.cause }

// commonCause returns the error of one failure if all failures are of its kind, so that the engine recognises an
// unreachable server or a missing right; nil otherwise. It does not return errors that say when to retry, because
// verdict decides that. A denial that is not about a right must not wake the handler when rights change.
func (p *pass) commonCause() error {
	first := p.failures[0]
	for _, f := range p.failures {
		_, temporary := dsl.IsTemporary(f.err)
		if f.reason != first.reason || temporary || dsl.IsPermanent(f.err) || f.reason == reasonQuota || f.reason == reasonDenied {
			return nil
		}
	}
	return first.err
}

// verdict adds to an error when to retry. It is permanent only if the failure of every child is: a permanent error
// of one child must not stop the others.
func (p *pass) verdict(err error) error {
	permanent, temporary, after := len(p.waits) == 0, true, time.Duration(-1)
	for _, f := range p.failures {
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
