// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	invalid := wrong(reasonInvalid, "no name")
	for name, c := range map[string]struct {
		fails   []error
		waits   []time.Duration
		objects int
		reason  string
		message string
		check   func(error) bool
	}{
		"nothing is desired": {
			reason: reasonAllApplied, message: "There is nothing to apply.", check: func(err error) bool { return err == nil },
		},
		"all objects are applied": {
			objects: 3, reason: reasonAllApplied, message: "All 3 children are applied.", check: func(err error) bool { return err == nil },
		},
		"the shortest wait counts, and one without a time does not": {
			waits: []time.Duration{0, time.Minute, time.Second}, reason: reasonWaiting, message: "Waiting for w0, w1, w2.",
			check: func(err error) bool { most, waits := dsl.IsWaiting(err); return waits && most == time.Second },
		},
		"an error of Waiting is a wait": {
			fails: []error{dsl.Waiting("a0 to be gone", time.Second)}, reason: reasonWaiting, message: "Waiting for a0 to be gone.",
			check: func(err error) bool { most, waits := dsl.IsWaiting(err); return waits && most == time.Second },
		},
		"an error of Waiting that does not name the child gets its label": {
			fails: []error{dsl.Waiting("the cache", 0)}, reason: reasonWaiting, message: "Waiting for a0: the cache.",
			check: func(err error) bool { _, waits := dsl.IsWaiting(err); return waits },
		},
		"a failure counts more than a wait": {
			fails: []error{refused}, waits: []time.Duration{0}, reason: reasonFailed, message: "a0: refused",
			check: func(err error) bool { _, waits := dsl.IsWaiting(err); return !waits },
		},
		"failures are sorted, and the first gives the reason": {
			fails: []error{invalid, refused}, reason: reasonInvalid, message: "a0: no name; a1: refused",
			check: func(err error) bool { return !errors.Is(err, refused) },
		},
		"failures with one reason have the cause of the first": {
			fails: []error{refused, errors.New("other")}, reason: reasonFailed, message: "a0: refused; a1: other",
			check: func(err error) bool { return errors.Is(err, refused) },
		},
		"a failure is permanent if all are": {
			fails: []error{dsl.Permanent(refused), dsl.Permanent(invalid)}, reason: reasonFailed, message: "a0: refused; a1: no name",
			check: dsl.IsPermanent,
		},
		"a failure is retried if one can be": {
			fails: []error{dsl.Permanent(refused), refused}, reason: reasonFailed, message: "a0: refused; a1: refused",
			check: func(err error) bool { return !dsl.IsPermanent(err) },
		},
		"a failure is retried if something waits": {
			fails: []error{dsl.Permanent(refused)}, waits: []time.Duration{0}, reason: reasonFailed, message: "a0: refused",
			check: func(err error) bool { return !dsl.IsPermanent(err) },
		},
		"the soonest retry counts if all ask for one": {
			fails: []error{dsl.Temporary(refused, time.Minute), dsl.Temporary(refused, time.Second)}, reason: reasonFailed, message: "a0: refused; a1: refused",
			check: func(err error) bool {
				after, asked := dsl.IsTemporary(err)
				return asked && after == time.Second && !errors.Is(err, refused)
			},
		},
		"one failure without a time leaves the retry to the back-off": {
			fails: []error{dsl.Temporary(refused, time.Minute), refused}, reason: reasonFailed, message: "a0: refused; a1: refused",
			check: func(err error) bool { _, asked := dsl.IsTemporary(err); return !asked },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r result
			for i, err := range c.fails {
				var part result
				part.fail("a"+string(rune('0'+i)), err)
				r.add(part)
			}
			for i, most := range c.waits {
				r.wait(most, "w%d", i)
			}
			condition, err := r.summary(c.objects)
			if condition.Reason != c.reason || condition.Message != c.message {
				t.Errorf("the condition is %s: %s, want %s: %s", condition.Reason, condition.Message, c.reason, c.message)
			}
			if !c.check(err) {
				t.Errorf("the error is not as it should be: %v", err)
			}
			if quiet := len(c.fails)+len(c.waits) == 0; r.quiet() != quiet || (condition.Status == "True") != quiet {
				t.Errorf("quiet is %v and the status %s, want quiet %v", r.quiet(), condition.Status, quiet)
			}
		})
	}
}

func TestManyFailuresAreCutShort(t *testing.T) {
	t.Parallel()
	var r result
	for i := range 9 {
		r.fail("a"+string(rune('0'+i)), errors.New("refused"))
	}
	if condition, _ := r.summary(9); !strings.HasSuffix(condition.Message, "a4: refused and 4 more") {
		t.Errorf("the message is %s", condition.Message)
	}
}
