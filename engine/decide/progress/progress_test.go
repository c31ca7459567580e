// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

var (
	now     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	errTest = errors.New("no luck")
)

func TestFail(t *testing.T) {
	tests := map[string]struct {
		handler  dsl.Handler
		err      error
		attempts int // so far
		failed   bool
		min, max time.Duration // of the wait
	}{
		"the first retry comes after the initial back-off": {dsl.Handler{Retries: dsl.Unlimited}, errTest, 0, false, time.Second, 1200 * time.Millisecond},
		"the back-off doubles":                             {dsl.Handler{Retries: dsl.Unlimited}, errTest, 3, false, 8 * time.Second, 9600 * time.Millisecond},
		"the back-off is bounded":                          {dsl.Handler{Retries: dsl.Unlimited}, errTest, 500, false, 5 * time.Minute, 6 * time.Minute},
		"a handler's own back-off holds": {
			dsl.Handler{Retries: dsl.Unlimited, Backoff: dsl.Backoff{Initial: time.Minute, Max: 90 * time.Second}}, errTest, 1, false, 90 * time.Second, 108 * time.Second},
		"an initial back-off above the default bound is the bound": {
			dsl.Handler{Retries: dsl.Unlimited, Backoff: dsl.Backoff{Initial: time.Hour}}, errTest, 4, false, time.Hour, 72 * time.Minute},
		"a temporary error says when":                      {dsl.Handler{Retries: dsl.Unlimited}, fmt.Errorf("x: %w", dsl.Temporary(errTest, 42*time.Second)), 9, false, 42 * time.Second, 42 * time.Second},
		"a temporary error may say now":                    {dsl.Handler{Retries: dsl.Unlimited}, dsl.Temporary(errTest, 0), 0, false, 0, 0},
		"a permanent error is the end":                     {dsl.Handler{Retries: dsl.Unlimited}, fmt.Errorf("x: %w", dsl.Permanent(errTest)), 0, true, 0, 0},
		"two retries allow a third attempt":                {dsl.Handler{Retries: 2}, errTest, 1, false, 2 * time.Second, 2400 * time.Millisecond},
		"and no fourth":                                    {dsl.Handler{Retries: 2}, errTest, 2, true, 0, 0},
		"no retries allow one attempt":                     {dsl.Handler{Retries: 0}, errTest, 0, true, 0, 0},
		"an error that is to fail is the end":              {dsl.Handler{Retries: dsl.Unlimited, Errors: dsl.ErrorsFail}, errTest, 0, true, 0, 0},
		"but not one that says when":                       {dsl.Handler{Retries: dsl.Unlimited, Errors: dsl.ErrorsFail}, dsl.Temporary(errTest, time.Second), 0, false, time.Second, time.Second},
		"nor is that ignored":                              {dsl.Handler{Retries: dsl.Unlimited, Errors: dsl.ErrorsIgnore}, dsl.Temporary(errTest, time.Second), 0, false, time.Second, time.Second},
		"nor a permanent one":                              {dsl.Handler{Retries: dsl.Unlimited, Errors: dsl.ErrorsIgnore}, dsl.Permanent(errTest), 0, true, 0, 0},
		"a retry that comes before the deadline is made":   {dsl.Handler{Retries: dsl.Unlimited, Deadline: time.Minute}, dsl.Temporary(errTest, 59*time.Second), 0, false, 59 * time.Second, 59 * time.Second},
		"one that would not is not waited for":             {dsl.Handler{Retries: dsl.Unlimited, Deadline: time.Minute}, dsl.Temporary(errTest, time.Minute), 0, true, 0, 0},
		"a temporary error uses up retries like any other": {dsl.Handler{Retries: 1}, dsl.Temporary(errTest, time.Second), 1, true, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Record{Attempts: tt.attempts}.Fail(&tt.handler, tt.err, now)
			if got.Failed != tt.failed || got.Done != tt.failed || got.Attempts != tt.attempts+1 {
				t.Errorf("record = %+v, want failed %v after %d attempts", got, tt.failed, tt.attempts+1)
			}
			if wait := got.Remaining(now); !tt.failed && (wait < tt.min || wait > tt.max) {
				t.Errorf("wait = %s, want %s to %s", wait, tt.min, tt.max)
			}
			if !strings.Contains(got.Message, "no luck") {
				t.Errorf("message = %q", got.Message)
			}
		})
	}
}

func TestFor(t *testing.T) {
	waiting := Record{Cause: dsl.Update, View: "1", Attempts: 3, Due: now.Add(time.Hour)}
	if got := waiting.For(dsl.Update, "1"); got != waiting {
		t.Errorf("the same work begins again: %+v", got)
	}
	for name, got := range map[string]Record{"a new view": waiting.For(dsl.Update, "2"), "another cause": waiting.For(dsl.Delete, "1")} {
		if got.Attempts != 0 || got.Remaining(now) > 0 {
			t.Errorf("%s does not cut the wait short: %+v", name, got)
		}
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	got := Record{}.Fail(&dsl.Handler{}, errors.New(strings.Repeat("ä", 500)), now).Message
	if len(got) > maxMessage+len("…") || !strings.HasSuffix(got, "…") {
		t.Errorf("message has %d bytes", len(got))
	}
}

func TestPeek(t *testing.T) {
	h := &dsl.Handler{Retries: dsl.Unlimited}
	failed := Record{Cause: dsl.Create, View: "v"}.Fail(h, errors.New("no"), now)
	early := failed.TryEarly(now)
	if early.Remaining(now) > 0 {
		t.Errorf("it waits for %s", early.Remaining(now))
	}
	if diff := cmp.Diff(failed, early.Fail(h, errors.New("no"), now)); diff != "" {
		t.Errorf("a look before its time counts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(failed, early.Lasting()); diff != "" {
		t.Errorf("what is stored (-want +got):\n%s", diff)
	}
	if got := early.Fail(h, dsl.Permanent(errors.New("never")), now); !got.Failed || got.Attempts != 2 {
		t.Errorf("a failure for good counts at once: %+v", got)
	}
	if due := failed.TryEarly(failed.Due); !due.Early.IsZero() {
		t.Error("a try that is due is none before its time")
	}
}
