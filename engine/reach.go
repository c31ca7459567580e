// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/handwerk-dev/handwerk/dsl"
)

// calmAgain is how long no request must have failed before it is said that requests get through again:
// a server that comes and goes is one fault, not many.
const calmAgain = 5 * time.Second

// reach says when requests begin to fail because nobody answers, and when they get through again: once
// each, however many requests, objects and informers that is about. What fails for it says so itself
// only to who looks closely.
type reach struct {
	log logr.Logger

	mu sync.Mutex
	// lost are the parts of the API that do not answer: all of it, or groups.
	lost map[string]*silence
}

// silence is a time in which a part of the API does not answer.
type silence struct {
	begun, last time.Time
	failed      int
	end         *time.Timer // runs once something was answered
}

// everything is the part of the API that is all of it.
const everything = "the API server"

func newReach(log logr.Logger) *reach { return &reach{log: log, lost: map[string]*silence{}} }

// failed notes a request that nobody answered.
func (r *reach) failed(part string, err error) {
	r.mu.Lock()
	s, known := r.lost[part]
	if !known {
		s = &silence{begun: time.Now()}
		r.lost[part] = s
	}
	s.failed++
	s.last = time.Now()
	if s.end != nil {
		s.end.Stop()
		s.end = nil
	}
	r.mu.Unlock()
	if !known {
		r.log.Info("requests fail; what needs them waits", dsl.LogWarning, true, "to", part, "error", err.Error())
	}
}

// answered notes a request that was answered.
func (r *reach) answered(part string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.lost[part]; s != nil && s.end == nil {
		s.end = time.AfterFunc(calmAgain, func() { r.back(part, s) })
	}
}

// back says that a part of the API answers again.
func (r *reach) back(part string, s *silence) {
	r.mu.Lock()
	over := r.lost[part] == s && s.end != nil
	if over {
		delete(r.lost, part)
	}
	r.mu.Unlock()
	if over {
		r.log.Info("requests get through again", "to", part, "failed", s.failed, "lasted", s.last.Sub(s.begun).Round(time.Second).String())
	}
}

// transport notes what becomes of requests.
type reachTransport struct {
	next  http.RoundTripper
	reach *reach
}

// RoundTrip sends a request.
func (t *reachTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	switch {
	case err != nil && !errors.Is(request.Context().Err(), context.Canceled):
		t.reach.failed(everything, err)
	case err != nil:
	case unavailable(response.StatusCode):
		t.reach.answered(everything)
		t.reach.failed(groupOf(request.URL.Path), errors.New(response.Status))
	default:
		t.reach.answered(everything)
		t.reach.answered(groupOf(request.URL.Path))
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the connections underneath.
func (t *reachTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

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

// unanswered reports whether an error says that nobody answered, of which reach has told.
func unanswered(err error) bool {
	if err == nil {
		return false
	}
	if netErr, is := errors.AsType[net.Error](err); is && netErr.Timeout() && !errors.Is(err, errTimeout) {
		return true
	}
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		utilnet.IsProbableEOF(err) || errors.Is(err, io.ErrUnexpectedEOF) || isDialing(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err)
}

// isDialing reports whether no connection came about, or one broke.
func isDialing(err error) bool {
	_, is := errors.AsType[*net.OpError](err)
	return is
}
