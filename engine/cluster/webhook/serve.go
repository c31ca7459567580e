// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// lane has the limits that the requests of one kind share. Reviews and conversions have one each: a review that reads objects may need
// a conversion, and would wait for itself.
type lane struct {
	gate *gate
	// reading has a place for each body that is being read. A request that waits for one takes no memory.
	reading chan struct{}
	// bytes limits a body.
	bytes int64
	// patience is how long the API server waits unless it says so.
	patience time.Duration
}

func newLane(set Options, bytes int64, patience time.Duration) *lane {
	b := bounds{room: set.Waiting, heldBytes: max(heldBytes, bytes), runningBytes: max(runningBytes, bytes)}
	return &lane{gate: newGate(set.AtOnce, b), reading: make(chan struct{}, set.AtOnce), bytes: bytes, patience: patience}
}

// route is a path with the function that answers there.
type route struct {
	path    string
	lane    *lane
	decode  func(body []byte) (job, error)
	missing bool // there is no function
}

// job is a decoded review.
type job struct {
	// namespace is the queue in which it waits for its turn.
	namespace string
	uid       types.UID
	// about has keys and values for the log.
	about []any
	// run calls the function and returns what to answer.
	run func(ctx context.Context) answer
	// panicked returns the answer if the function panicked. The log has the id.
	panicked func(id string) answer
}

// answer is a body and how it counts.
type answer struct {
	body   any
	result string
}

// ServeHTTP answers a request. It is exported for tests of the caller: they need no TLS.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	if s.closing.Load() {
		w.Header().Set("Connection", "close")
	}
	to := s.routes[r.URL.Path]
	if to == nil {
		(&refusal{code: http.StatusNotFound, text: "no webhook has the path " + shortened(r.URL.Path)}).write(w)
		return
	}
	s.reviewing(to, 1)
	defer s.reviewing(to, -1)
	result := s.answer(w, r, to, began)
	if s.set.Metrics != nil {
		s.set.Metrics.Reviewed(to.path, result, time.Since(began))
	}
}

func (s *Server) reviewing(to *route, by int) {
	if s.set.Metrics != nil {
		s.set.Metrics.Reviewing(to.path, by)
	}
}

// answer writes the answer to a request that began at a time, and returns how it counts.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, to *route, began time.Time) (result string) {
	of := newRequest()
	defer to.lane.gate.release(of)
	a, err := s.asked(w, r, to, of, began)
	if err == nil {
		err = write(w, http.StatusOK, a.body)
	}
	if err == nil {
		return a.result
	}
	refused, is := errors.AsType[*refusal](err)
	if !is {
		refused = &refusal{code: http.StatusInternalServerError, text: err.Error(), result: Failed}
	}
	refused.write(w)
	return refused.counts()
}

// asked reads a review, waits for its turn and runs its function.
func (s *Server) asked(w http.ResponseWriter, r *http.Request, to *route, of *request, began time.Time) (answer, error) {
	if err := checkHead(r); err != nil {
		return answer{}, err
	}
	wait, err := waits(r, to.lane.patience)
	if err != nil {
		return answer{}, err
	}
	late := &refusal{code: http.StatusGatewayTimeout, text: to.path + " gave no response within " + wait.String() + ", shortly before the timeout of the request", result: TimedOut}
	ctx, cancel := context.WithDeadlineCause(r.Context(), began.Add(wait), late)
	defer cancel()
	body, err := to.lane.read(ctx, w, r, of)
	if err != nil {
		return answer{}, err
	}
	j, err := to.decode(body)
	if err != nil {
		return answer{}, err
	}
	of.namespace = j.namespace
	if err := to.lane.gate.enter(ctx, of); err != nil {
		return answer{}, err
	}
	return s.run(ctx, to, j, of)
}
