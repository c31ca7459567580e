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
		"a temporary error uses up retries like any other": {dsl.Handler{Retries: 1}, dsl.Temporary(errTest, time.Second), 1, true, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Record{Attempts: tt.attempts}.Fail(&tt.handler, tt.err, now)
			if got.Failed != tt.failed || got.Done != tt.failed || got.Attempts != tt.attempts+1 {
				t.Errorf("record = %+v, want failed %v after %d attempts", got, tt.failed, tt.attempts+1)
			}
			if wait := got.Waits(now); !tt.failed && (wait < tt.min || wait > tt.max) {
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
		t.Errorf("the same work begins anew: %+v", got)
	}
	for name, got := range map[string]Record{"a new view": waiting.For(dsl.Update, "2"), "another cause": waiting.For(dsl.Delete, "1")} {
		if got.Attempts != 0 || got.Waits(now) > 0 {
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

func TestStateIsReadBack(t *testing.T) {
	large := map[string]any{"spec": map[string]any{"text": strings.Repeat("abcdefgh", 500), "n": int64(1) << 60}}
	tests := map[string]State{
		"nothing":      {},
		"a digest":     {Handled: true, Base: map[string]string{"": "abc", "spec.x": "-"}},
		"an essence":   {Handled: true, Base: map[string]string{"": "abc"}, Old: map[string]any{"spec": map[string]any{"n": int64(3), "f": 1.5}}},
		"a packed one": {Handled: true, Base: map[string]string{"": "abc"}, Old: large},
		"progress":     {Records: map[string]Record{"h": {Cause: dsl.Create, View: "v", Attempts: 2, Due: now, Message: "m"}}},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			text, degraded, err := want.Encode()
			if err != nil || degraded {
				t.Fatalf("Encode() = %v, degraded %v", err, degraded)
			}
			if want.Old != nil && len(text) > 2000 {
				t.Errorf("%d bytes are stored for a text that repeats itself", len(text))
			}
			got, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
			if !want.Empty() && !strings.HasPrefix(text, dsl.StateMark) {
				t.Errorf("%s is not marked as an operator's", text)
			}
		})
	}
}

func TestStateThatIsTooLargeIsADigest(t *testing.T) {
	noise := make([]any, 60000)
	for i := range noise {
		noise[i] = fmt.Sprint(i * 7919)
	}
	text, degraded, err := State{Handled: true, Base: map[string]string{"": "abc"}, Old: map[string]any{"l": noise}}.Encode()
	if err != nil || !degraded || len(text) > MaxSize {
		t.Fatalf("%d bytes, degraded %v, %v", len(text), degraded, err)
	}
	got, err := Parse(text)
	if err != nil || !got.Handled || got.Old != nil || got.Base[""] != "abc" {
		t.Errorf("state = %+v, %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"what is not JSON":            "{",
		"a version of the future":     `{"handwerk":2}`,
		"an essence that is not one":  `{"handwerk":1,"base":{},"packed":"%%%"}`,
		"an essence that is cut":      `{"handwerk":1,"base":{},"packed":"AAAA"}`,
		"a list where a map belongs":  `{"handwerk":1,"base":[]}`,
		"somebody else's annotation ": `hello`,
	} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%s is read: %s", name, text)
		}
	}
}
