// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// calmAgain is the time without failed requests after which an outage is over. So a server that comes and goes is one outage,
// not many.
const calmAgain = 15 * time.Second

// doubt is the time in which all requests must fail before it is an outage. One failed request of many is no outage, and
// neither are all requests of a broken connection.
const doubt = 250 * time.Millisecond

// early is the time after the first failure in which errors are not logged by themselves: they may belong to an outage.
const early = time.Second

// mostFailed is the number of failed requests from which an absence is an outage although other requests get responses, if
// more than one request in answeredShare fails.
const (
	mostFailed    = 5
	answeredShare = 4
)

// reopening is the time after an outage in which a server may still refuse requests that it will allow later.
const reopening = 35 * time.Second

// Outages logs once when requests begin to fail because no server answers, and once when they get through again, for any number
// of requests, objects and informers. One failed request among others with a response is no outage. In an outage, single errors
// are logged at level 1 only.
type Outages struct {
	log logr.Logger
	// heard is when the last response came, in nanoseconds since 1970.
	heard atomic.Int64

	mu sync.Mutex
	// lost are the parts of the API without responses: all of it, or groups.
	lost map[string]*absence
	// returned is when the end of the last outage of all of it was logged.
	returned time.Time
	// turned receives when requests begin to fail, and when one gets a response after that.
	turned chan struct{}
}

// absence is a time in which requests to a part of the API fail.
type absence struct {
	begun, over time.Time
	// alone is when the first failed request since the last response was sent; zero after a response.
	alone time.Time
	// failed and answered count the requests since the absence began.
	failed, answered int
	// logged: it is a logged outage.
	logged bool
	end    *time.Timer // runs once something was answered
}

// fail counts a failed request that was sent at begun, and reports whether to log an outage now. Certain: this failure alone
// proves it.
func (s *absence) fail(begun time.Time, certain bool) bool {
	s.failed++
	if s.alone.IsZero() {
		s.alone = begun
	}
	if s.end != nil {
		s.end.Stop()
		s.end = nil
	}
	many := s.answered > 0 && s.failed >= mostFailed && s.failed*answeredShare >= s.answered
	if s.logged || !certain && !many && time.Since(s.alone) < doubt {
		return false
	}
	s.logged = true
	return true
}

// everything is the name of the whole API.
const everything = "the API server"

// storage is the name of the part of the API for writes: the disk or the quota of etcd may be full while reads work.
const storage = "the storage of the API server"

// NewOutages returns an Outages without any requests yet.
func NewOutages(log logr.Logger) *Outages {
	return &Outages{log: log, lost: map[string]*absence{}, turned: make(chan struct{}, 1)}
}

// failed notes a failed request that was sent at begun; see [absence.fail].
func (w *Outages) failed(part string, err error, begun time.Time, certain bool) {
	if heard := time.Unix(0, w.heard.Load()); part == everything && heard.After(begun) {
		begun = heard
	}
	w.mu.Lock()
	s, known := w.lost[part]
	if !known {
		s = &absence{begun: time.Now()}
		w.lost[part] = s
	}
	begins := part == everything && (!known || s.end != nil)
	logs := s.fail(begun, certain)
	w.mu.Unlock()
	if begins {
		w.turn()
	}
	if logs {
		w.log.Info("requests fail; what needs them waits", logmark.Warning, true, "to", part, "error", err.Error())
	}
}

// Away reports whether there is a logged outage of the API server, or was one until a moment ago: watches are opened again
// after a wait that has grown by then.
func (w *Outages) Away() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.lost[everything]
	return s != nil && s.logged || time.Since(w.returned) < reopening
}

// Logged reports whether there is a logged outage of some part of the API, or was one until a moment ago. The first second of
// an absence counts, too: it may become an outage, and failed requests are tried again at once.
func (w *Outages) Logged() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.lost {
		if s.logged || time.Since(s.begun) < early {
			return true
		}
	}
	return time.Since(w.returned) < reopening
}

// Covers reports whether a refusal belongs to a logged outage: an unknown user may do nothing, and a server that has just come
// back refuses requests for a moment that it will allow later.
func (w *Outages) Covers(err error) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) && w.Away()
}

// lacks reports whether some part of the API gives no responses.
func (w *Outages) lacks() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lost) > 0
}

// answered notes a request with a response.
func (w *Outages) answered(part string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.lost[part]
	if s == nil {
		return
	}
	s.answered++
	s.alone = time.Time{}
	if s.end == nil {
		s.over = time.Now()
		s.end = time.AfterFunc(calmAgain, func() { w.back(part, s) })
		if part == everything {
			w.turn()
		}
	}
}

// back logs that a part of the API answers again, if its outage was logged.
func (w *Outages) back(part string, s *absence) {
	w.mu.Lock()
	over := w.lost[part] == s && s.end != nil
	if over {
		delete(w.lost, part)
	}
	over = over && s.logged
	if over && part == everything {
		w.returned = time.Now()
	}
	w.mu.Unlock()
	if over {
		w.log.Info("requests get through again", "to", part, "failed", s.failed, "lasted", s.over.Sub(s.begun).Round(time.Second).String())
	}
}

// Transport records the results of requests that are sent with next. It marks the errors of requests without a response for
// [IsUnanswered].
func (w *Outages) Transport(next http.RoundTripper) http.RoundTripper {
	return &deadlineTransport{next, w}
}

type deadlineTransport struct {
	next  http.RoundTripper
	watch *Outages
}

func (t *deadlineTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	begun := time.Now()
	response, err := t.next.RoundTrip(request)
	if err == nil {
		t.watch.heard.Store(time.Now().UnixNano())
	}
	switch {
	case err != nil && !errors.Is(request.Context().Err(), context.Canceled):
		t.watch.failed(everything, plain(request, err), begun, false)
		if err != io.EOF { //nolint:errorlint // client-go compares, too
			err = &noReplyError{err}
		}
	case err != nil:
	case response.StatusCode == http.StatusInternalServerError && unstored(response):
		t.watch.answered(everything)
		t.watch.failed(storage, errors.New("the storage refuses; its disk or its quota may be full"), begun, false)
	case unavailable(response.StatusCode):
		t.watch.answered(everything)
		t.watch.failed(groupOf(request.URL.Path), errors.New(response.Status), begun, false)
	case response.StatusCode == http.StatusUnauthorized:
		t.watch.failed(everything, errUnknown, begun, true)
	case t.watch.lacks():
		t.watch.answered(everything)
		t.watch.answered(groupOf(request.URL.Path))
		if request.Method != http.MethodGet && response.StatusCode < http.StatusBadRequest {
			t.watch.answered(storage)
		}
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the connections underneath.
func (t *deadlineTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// errLate replaces the many errors of the HTTP client for a timeout.
var errLate = errors.New("no answer in time")

// errUnknown is the error of all requests when the API server does not accept the credentials.
var errUnknown = errors.New("401 Unauthorized: the API server does not accept the token or certificate; it may have expired")

// plain returns why a request got no response, for people.
func plain(request *http.Request, err error) error {
	// The client may end the request itself, a moment before its context does.
	if end, has := request.Context().Deadline(); has && time.Until(end) < 100*time.Millisecond {
		return errLate
	}
	return err
}

func unavailable(code int) bool {
	return code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout
}

// groupOf returns the name of the part of the API with this path. The server's URL may have a path of its own before it.
func groupOf(path string) string {
	_, rest, found := strings.Cut(path, "/apis/")
	if !found {
		return "the core API"
	}
	group, _, _ := strings.Cut(rest, "/")
	return "the API group " + group
}

// noReplyError is the error of a request without a response. Its text is that of the wrapped error.
type noReplyError struct{ err error }

func (e *noReplyError) Error() string { return e.err.Error() }
func (e *noReplyError) Unwrap() error { return e.err }

// Timeout reports whether the wrapped error is a timeout, for code that checks a [net.Error].
func (e *noReplyError) Timeout() bool {
	inner, is := errors.AsType[net.Error](e.err)
	return is && inner.Timeout()
}

// IsUnanswered reports whether an error means that the API server or its storage did not answer. An error of another server, which
// a handler has called, does not count.
func IsUnanswered(err error) bool {
	_, silent := errors.AsType[*noReplyError](err)
	_, late := errors.AsType[*noAnswerError](err)
	return silent || late || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err) && ofStorage(err.Error())
}
