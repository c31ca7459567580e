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

// calmAgain is how long no request must have failed before it is said that requests get through again:
// a server that comes and goes is one fault, not many.
const calmAgain = 15 * time.Second

// doubt is how long requests must have failed, with no answer between them, before the server counts as away. One
// request of many that comes to nothing, or all that were on a connection which broke, are no outage.
const doubt = 250 * time.Millisecond

// early is how long after the first failure an error is not logged by itself: it may belong to an outage.
const early = time.Second

// mostFailed is how many requests may fail in an absence before the log speaks of it though others are answered, where
// they are more than one in answeredShare.
const (
	mostFailed    = 5
	answeredShare = 4
)

// reopening is how long after that a server may still refuse what it will allow, or ask to be left alone.
const reopening = 35 * time.Second

// Outages says in the log when requests begin to fail because no server answers, and when they get through again: once
// each, however many requests, objects and informers that is about. One request that comes to nothing among others
// that are answered is no outage. What fails in an outage is logged by itself at level 1 alone.
type Outages struct {
	log logr.Logger
	// heard is when the last request was answered, in nanoseconds since 1970.
	heard atomic.Int64

	mu sync.Mutex
	// lost are the parts of the API that do not answer: all of it, or groups.
	lost map[string]*absence
	// returned is when all of it was said to answer again.
	returned time.Time
	// turned has something when requests begin to fail, and when one is answered after that.
	turned chan struct{}
}

// absence is a time in which requests to a part of the API fail.
type absence struct {
	begun, over time.Time
	// alone is when the first request was sent of those that failed since the last answer; zero after an answer.
	alone time.Time
	// failed and answered count requests since it began.
	failed, answered int
	// logged: the log says that requests fail.
	logged bool
	end    *time.Timer // runs once something was answered
}

// fail counts a request that was sent at begun and came to nothing, and reports whether the absence is to be logged now.
// Certain: this failure alone proves it.
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

// everything is the part of the API that is all of it.
const everything = "the API server"

// storage is the part of the API that writes need: etcd, whose disk or quota may be full while reads are answered.
const storage = "the storage of the API server"

// NewOutages returns a watch that has seen no request yet.
func NewOutages(log logr.Logger) *Outages {
	return &Outages{log: log, lost: map[string]*absence{}, turned: make(chan struct{}, 1)}
}

// failed notes a request that was sent at begun and came to nothing; see [absence.fail].
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

// Away reports whether the log says that the API server does not answer, or said so until a moment ago: watches are
// opened again after a wait that has grown by then.
func (w *Outages) Away() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.lost[everything]
	return s != nil && s.logged || time.Since(w.returned) < reopening
}

// Logged reports whether the log says that requests to some part of the API fail, or said so until a moment ago. The
// first second of an absence counts, too: it may become an outage, and failed requests are tried again at once.
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

// Covers reports whether a refusal is due to what is said already: who is not known may do nothing, and a server
// that has just come back refuses for a moment what it will allow.
func (w *Outages) Covers(err error) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) && w.Away()
}

// lacks reports whether some part of the API does not answer.
func (w *Outages) lacks() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lost) > 0
}

// answered notes a request that was answered.
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

// back says that a part of the API answers again, where the log says that it does not.
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
// [Unanswered].
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

// errLate says that the time of a request was over, which errors of the HTTP client do in many ways.
var errLate = errors.New("no answer in time")

// errUnknown is what is wrong when the API server does not know who asks, whatever is asked.
var errUnknown = errors.New("401 Unauthorized: the API server does not accept the token or certificate; it may have expired")

// plain is why a request was not answered, for people.
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

// groupOf names the part of the API that a path is in. The server's URL may have a path of its own
// before it.
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

// Unanswered reports whether an error says that the API server did not answer, or that its storage did not. The error of
// another server, which a handler asked, says neither.
func Unanswered(err error) bool {
	_, silent := errors.AsType[*noReplyError](err)
	_, late := errors.AsType[*noAnswerError](err)
	return silent || late || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err) && ofStorage(err.Error())
}
