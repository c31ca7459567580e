// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
)

// answering is a server that does not answer, in the words given.
type answering struct{ err error }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return nil, a.err }

// TestWhyNobodyAnswersIsSaidPlainly holds what a person reads of requests that fail.
func TestWhyNobodyAnswersIsSaidPlainly(t *testing.T) {
	canceled := errors.New("net/http: request canceled")
	tests := map[string]struct {
		limit time.Duration
		give  bool // the one who asks gives up
		err   error
		want  string // in the line; empty for no line
	}{
		"its time is over, and the client ends it":  {0, false, canceled, `"error"="no answer in time"`},
		"a moment before its context does":          {50 * time.Millisecond, false, canceled, `"error"="no answer in time"`},
		"nobody listens":                            {time.Minute, false, errors.New("connection refused"), `"error"="connection refused"`},
		"nobody wants to know it any more, no line": {time.Minute, true, canceled, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
				ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
				defer cancel()
				if tt.give {
					cancel()
				}
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server/api/v1/pods", nil)
				if err != nil {
					t.Fatal(err)
				}
				through := New(log).Transport(answering{tt.err})
				if _, err := through.RoundTrip(request); !Unanswered(err) && !tt.give {
					t.Errorf("the error %v does not say that nobody answered", err)
				}
				if got := strings.Join(lines, "\n"); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
					t.Errorf("the log says %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// TestAServerIsAwayUntilItsWatchesAreOpen holds for how long what fails is put down to a server that was away:
// until client-go has tried again to open watches.
func TestAServerIsAwayUntilItsWatchesAreOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(funcr.New(func(string, string) {}, funcr.Options{}))
		away := func(want bool, when string) {
			t.Helper()
			synctest.Wait()
			if got := w.Away(); got != want {
				t.Errorf("%s: away is %v", when, got)
			}
		}
		away(false, "at first")
		w.failed("the API group example.com", errors.New("bad gateway"))
		away(false, "when one group does not answer")
		w.failed(everything, errors.New("connection refused"))
		away(true, "when nothing does")
		w.answered(everything)
		time.Sleep(calmAgain)
		away(true, "when it is said that it answers again")
		time.Sleep(30 * time.Second)
		away(true, "when the last watch is tried again")
		time.Sleep(10 * time.Second)
		away(false, "when all watches are open")
	})
}
