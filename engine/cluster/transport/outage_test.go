// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answering is a server that does not answer, in the words given.
type answering struct{ err error }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return nil, a.err }

// TestWhatIsAnOutage holds which failures the log speaks of: those of a server that is away, and not those of single
// requests among others that are answered.
func TestWhatIsAnOutage(t *testing.T) {
	const fails, works = true, false
	type request struct {
		fails bool
		after time.Duration // after the one before it
	}
	many := func(n int, each ...request) (out []request) {
		for range n {
			out = append(out, each...)
		}
		return out
	}
	const second = time.Second
	tests := map[string]struct {
		requests []request
		outage   bool
	}{
		"one request of many fails":                           {append(many(100, request{works, second}), request{fails, second}, request{works, second}), false},
		"a connection breaks, with all requests on it":        {many(20, request{fails, 0}), false},
		"every hundredth request fails":                       {many(10, append(many(99, request{works, 10 * time.Millisecond}), request{fails, 0})...), false},
		"a request fails, and fails when it is tried again":   {many(2, request{fails, second / 2}), true},
		"a request fails, one is answered, another one fails": {[]request{{fails, 0}, {works, second}, {fails, second}}, false},
		"every second request fails":                          {many(10, request{fails, second}, request{works, 0}), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				w := NewOutages(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
				send := func(r request) {
					time.Sleep(r.after)
					server := http.RoundTripper(answering{errors.New("connection reset by peer")})
					if !r.fails {
						server = serving{}
					}
					request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/api/v1/pods", nil)
					if err != nil {
						t.Fatal(err)
					}
					_, _ = w.Transport(server).RoundTrip(request)
				}
				for _, r := range tt.requests {
					send(r)
				}
				if got := len(lines) > 0; got != tt.outage || got != w.Away() {
					t.Errorf("an outage: %v, away: %v, want %v; the log says %q", got, w.Away(), tt.outage, lines)
				}
				time.Sleep(early)
				if got := w.Logged(); got != tt.outage {
					t.Errorf("what fails counts as logged: %v, want %v", got, tt.outage)
				}
				send(request{works, time.Second})
				time.Sleep(time.Hour)
				synctest.Wait()
				if got := len(lines); tt.outage && got != 2 || !tt.outage && got != 0 {
					t.Errorf("in the end the log says %q", lines)
				}
			})
		})
	}
}

// full is a server whose storage takes no writes, in its own words.
type full struct{ says string }

func (f full) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return serving{}.RoundTrip(r)
	}
	body := io.NopCloser(strings.NewReader(`{"kind":"Status","reason":"InternalError","code":500,"message":"Internal error occurred: ` + f.says + `"}`))
	return &http.Response{StatusCode: http.StatusInternalServerError, Body: body, Header: http.Header{}, Request: r}, nil
}

// TestAStorageThatIsFullIsAnOutageOfWrites holds that writes which etcd refuses are one line when they begin to fail and
// one when they succeed again, that reads do not end it, and that the answer stays readable.
func TestAStorageThatIsFullIsAnOutageOfWrites(t *testing.T) {
	tests := map[string]struct {
		says   string
		outage bool
	}{
		"its quota is spent":         {"etcdserver: mvcc: database space exceeded", true},
		"one object is too large":    {"etcdserver: request is too large", false},
		"something else is not well": {"failed calling webhook", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				w := NewOutages(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
				send := func(server http.RoundTripper, method string) string {
					time.Sleep(time.Second)
					request, err := http.NewRequestWithContext(t.Context(), method, "http://server/api/v1/pods", nil)
					if err != nil {
						t.Fatal(err)
					}
					response, err := w.Transport(server).RoundTrip(request)
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(response.Body)
					if err != nil {
						t.Fatal(err)
					}
					return string(body)
				}
				for range 20 {
					if got := send(full{tt.says}, http.MethodPatch); !strings.HasSuffix(got, tt.says+`"}`) {
						t.Fatalf("the answer reads %q", got)
					}
					send(full{tt.says}, http.MethodGet)
				}
				if len(lines) > 0 != tt.outage || w.Logged() != tt.outage || w.Away() {
					t.Errorf("logged: %v, away: %v, want an outage of writes: %v; the log says %q", w.Logged(), w.Away(), tt.outage, lines)
				}
				refused := apierrors.NewInternalError(errors.New(tt.says))
				if got := IsUnanswered(refused); got != tt.outage {
					t.Errorf("the error %v counts as unanswered: %v", refused, got)
				}
				send(serving{}, http.MethodPatch)
				time.Sleep(time.Hour)
				synctest.Wait()
				if got := len(lines); tt.outage && got != 2 || !tt.outage && got != 0 {
					t.Errorf("in the end the log says %q", lines)
				}
			})
		})
	}
}

// serving is a server that answers.
type serving struct{}

func (serving) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
}

// TestWhyAServerDoesNotAnswerIsSaidPlainly holds what a person reads of requests that fail.
func TestWhyAServerDoesNotAnswerIsSaidPlainly(t *testing.T) {
	canceled := errors.New("net/http: request canceled")
	tests := map[string]struct {
		limit time.Duration
		give  bool // the one who asks gives up
		err   error
		want  string // in the line; empty for no line
	}{
		"its time is over, and the client ends it": {0, false, canceled, `"error"="no answer in time"`},
		"a moment before its context does":         {50 * time.Millisecond, false, canceled, `"error"="no answer in time"`},
		"no server listens":                        {time.Minute, false, errors.New("connection refused"), `"error"="connection refused"`},
		"the request was cancelled, no line":       {time.Minute, true, canceled, ""},
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
				through := NewOutages(log).Transport(answering{tt.err})
				_, _ = through.RoundTrip(request) // one that fails is no outage
				time.Sleep(doubt)
				if _, err := through.RoundTrip(request); !IsUnanswered(err) && !tt.give {
					t.Errorf("the error %v does not say that no server answered", err)
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
		w := NewOutages(funcr.New(func(string, string) {}, funcr.Options{}))
		away := func(want bool, when string) {
			t.Helper()
			synctest.Wait()
			if got := w.Away(); got != want {
				t.Errorf("%s: away is %v", when, got)
			}
		}
		away(false, "at first")
		w.failed("the API group example.com", errors.New("bad gateway"), time.Now(), true)
		away(false, "when one group does not answer")
		w.failed(everything, errors.New("connection refused"), time.Now().Add(-doubt), false)
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
