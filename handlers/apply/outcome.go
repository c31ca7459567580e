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

// failure is one thing that went wrong.
type failure struct {
	reason, text string
	err          error
}

// wait is one thing that is waited for, at most so long; zero means the default.
type wait struct {
	text string
	most time.Duration
}

// fail notes an error about what has a label. One that says that something is waited for is none.
func (p *pass) fail(label string, err error) {
	if most, waits := dsl.IsWaiting(err); waits {
		what := strings.TrimPrefix(err.Error(), "waiting for ")
		if !strings.HasPrefix(what, label) { // as what is to be said of the object may
			what = label + ": " + what
		}
		p.wait(most, "%s", what)
		return
	}
	reason, text := explain(err)
	p.failures = append(p.failures, failure{reason: reason, text: label + ": " + text, err: err})
}

// wait notes something that is waited for.
func (p *pass) wait(most time.Duration, format string, args ...any) {
	p.waits = append(p.waits, wait{text: fmt.Sprintf(format, args...), most: most})
}

// outcome reports how the pass went to people, and to the engine.
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

// waiting reports that nothing is wrong but that all is not done.
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

// failed reports what went wrong, in an order that is the same each time: a report that has not
// changed is not written again.
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

// failedError is what went wrong in one text.
type failedError struct {
	text  string
	cause error // nil when there are several
}

func (e *failedError) Error() string { return e.text }
func (e *failedError) Unwrap() error { return e.cause }

// commonCause is the error of one of the failures when all are of its kind, so that the engine knows a
// server that is away, or a right that is missing, by it; nil otherwise. What says when to try again is
// for the verdict alone. Who is denied something that is no right is not to be woken by one.
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

// verdict says when to try again. Only what is final for every child is final: the error of one
// must not stop what the others still need.
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

// listed joins texts, of many only the first.
func listed(texts []string, separator string) string {
	const most = 5
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], separator), len(texts)-most)
}
