// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// reviewTime is the timeout of a webhook that does not say one (timeoutSeconds in k8s.io/api/admissionregistration/v1).
	reviewTime = 10 * time.Second
	// conversionTime is the timeout of conversions (defaultRequestTimeout in k8s.io/apiserver/pkg/util/webhook).
	conversionTime = 30 * time.Second
	// longest is the longest timeout that the API server has for either.
	longest = 30 * time.Second
	// leastMargin is the least time that is left for sending the answer.
	leastMargin = 100 * time.Millisecond
	// claimedBytes is the most memory that a request gets for its Content-Length alone. Anybody in the cluster can claim a large one.
	claimedBytes = 256 << 10
	// heldBytes and runningBytes limit the sum of bodies; see bounds. A Pod of 256 MiB has room for both: objects in memory take about ten
	// times as much as their JSON.
	heldBytes    = 32 << 20
	runningBytes = 8 << 20
	// longestPath is how much of an unknown path an error quotes.
	longestPath = 100
)

// errCut is the cause of contexts of requests that end with the server.
var errCut = &refusal{code: http.StatusServiceUnavailable, text: "the webhook's process ends", result: Cut}

// refusal is an HTTP error.
type refusal struct {
	code int
	text string
	// result is its label in metrics. Defaults to Invalid.
	result string
}

// Error is the text.
func (r *refusal) Error() string { return r.text }

func (r *refusal) counts() string {
	if r.result == "" {
		return Invalid
	}
	return r.result
}

// write sends a Status, whose message the API server shows to the person whose request it is.
func (r *refusal) write(w http.ResponseWriter) {
	if r.code == http.StatusTooManyRequests || r.code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1") // the API server's client tries again then (IsNextRetry of withRetry in k8s.io/client-go/rest)
	}
	if r.code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	_ = write(w, r.code, metav1.Status{ // plain data
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(r.code), Reason: reasons[r.code], Message: r.text,
	})
}

// reasons are those of Status by HTTP code.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusNotFound:              metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError:   metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:        metav1.StatusReasonTimeout,
}

// write sends a value as JSON. It returns an error if the value has no JSON form, and has sent nothing then.
func write(w http.ResponseWriter, code int, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding the response: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(text) // the client is gone
	return nil
}

// checkHead returns an error if a request cannot be a review.
func checkHead(r *http.Request) error {
	if r.Method != http.MethodPost {
		return &refusal{code: http.StatusMethodNotAllowed, text: "a review is sent by POST"}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &refusal{code: http.StatusUnsupportedMediaType, text: "a review has the content type application/json"}
	}
	return nil
}

// waits returns how long the function of a request may take: a tenth less than the timeout that the API server sends, and at least
// leastMargin less, so that the answer arrives in time.
func waits(r *http.Request, usual time.Duration) (time.Duration, error) {
	timeout := usual
	if text := r.URL.Query().Get("timeout"); text != "" {
		var err error
		if timeout, err = time.ParseDuration(text); err != nil || timeout <= 0 {
			return 0, &refusal{code: http.StatusBadRequest, text: "the timeout of a review is a duration, as in timeout=10s"}
		}
	}
	timeout = min(timeout, longest)
	return timeout - min(max(timeout/10, leastMargin), timeout/2), nil
}

// read returns the body of a request, as soon as a place is free. It counts received bytes, and not the Content-Length.
func (l *lane) read(ctx context.Context, w http.ResponseWriter, r *http.Request, of *request) ([]byte, error) {
	tooLarge := &refusal{code: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("a review here has at most %d bytes", l.bytes)}
	if r.ContentLength > l.bytes {
		return nil, tooLarge
	}
	select {
	case l.reading <- struct{}{}:
		defer func() { <-l.reading }()
	case <-ctx.Done():
		return nil, ended(ctx, busy("requests"))
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a test's writer has none
	of.claimed = max(0, r.ContentLength)
	var body bytes.Buffer
	body.Grow(int(min(of.claimed, claimedBytes)) + bytes.MinRead)
	_, err := io.Copy(&body, &held{http.MaxBytesReader(w, r.Body, l.bytes), l.gate, of})
	if full, is := errors.AsType[*refusal](err); is {
		return nil, full
	}
	if _, is := errors.AsType[*http.MaxBytesError](err); is {
		return nil, tooLarge
	}
	if err != nil {
		return nil, &refusal{code: http.StatusBadRequest, text: "reading the review: " + err.Error()}
	}
	_ = control.SetReadDeadline(time.Time{}) // after an error it stays: net/http reads the rest of the body
	return body.Bytes(), nil
}

// held reads a body whose bytes a gate counts.
type held struct {
	io.Reader
	gate *gate
	of   *request
}

// Read reads. It returns an error if the gate holds too many bytes.
func (h *held) Read(into []byte) (int, error) {
	n, err := h.Reader.Read(into)
	if n > 0 && !h.gate.hold(h.of, int64(n)) {
		return n, busy("requests")
	}
	return n, err
}

// shortened quotes the beginning of a text for an error.
func shortened(text string) string {
	if len(text) > longestPath {
		return fmt.Sprintf("%q…", text[:longestPath])
	}
	return fmt.Sprintf("%q", text)
}
