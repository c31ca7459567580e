// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
)

// controls answers requests with a [Control], and passes on all others.
type controls struct {
	sandbox *Sandbox
	next    http.Handler
}

// ServeHTTP implements [http.Handler].
func (c *controls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verb, is := strings.CutPrefix(r.URL.Path, controlPath)
	if !is {
		c.next.ServeHTTP(w, r)
		return
	}
	out, code := any(Controlled{}), http.StatusOK
	err := c.permit(r)
	if err == nil {
		out, err = c.answer(w, r, ControlVerb(verb))
	}
	if err != nil {
		refusal := apierrors.NewBadRequest(err.Error()).Status()
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			refusal = status.Status()
		}
		refusal.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		out, code = refusal, int(refusal.Code)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(out) // an error is one of the client, which has gone
}

// permit returns why a request may not control the sandbox.
func (c *controls) permit(r *http.Request) error {
	user, known := c.sandbox.server.UserOf(r)
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	at := net.ParseIP(host)
	switch {
	case !known:
		return apierrors.NewUnauthorized("the sandbox is controlled with the token of its kubeconfig alone")
	case !slices.Contains(user.Groups, rbac.Masters):
		return refusedTo(user.Name)
	case at == nil || !at.IsLoopback():
		return refusedTo("another machine")
	case r.Method != http.MethodPost:
		return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "sandbox"}, r.Method)
	}
	return nil
}

func refusedTo(who string) error {
	return apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("%s may not control the sandbox", who))
}

// largest is the number of bytes that a control has at most.
const largest = 1 << 16

// answer does what a request asks for.
func (c *controls) answer(w http.ResponseWriter, r *http.Request, verb ControlVerb) (Controlled, error) {
	var control Control
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, largest))
	in.DisallowUnknownFields()
	if err := in.Decode(&control); err != nil {
		return Controlled{}, fmt.Errorf("reading the control: %w", err)
	}
	err := c.sandbox.control(r.Context(), verb, control)
	return Controlled{c.sandbox.clock.Now()}, err
}

// control does what a control says.
func (s *Sandbox) control(ctx context.Context, verb ControlVerb, c Control) error {
	of := s.Workloads()
	switch verb {
	case ControlAdvance:
		return s.clock.Advance(ctx, c.Duration.Duration)
	case ControlHold:
		return of.Hold(c.Workload)
	case ControlDelay:
		return of.Delay(c.Workload, c.Duration.Duration)
	case ControlFail:
		if c.Request == nil {
			return of.Fail(c.Workload, c.Reason)
		}
		f, err := s.fault(*c.Request)
		if err == nil {
			s.fail(f)
		}
		return err
	case ControlRelease:
		return s.release(c)
	}
	return fmt.Errorf("a sandbox cannot %s, only advance, hold, fail, delay and release", verb)
}

// release ends what a control names.
func (s *Sandbox) release(c Control) error {
	switch {
	case c.All:
		s.Workloads().ReleaseAll()
		s.requests.endFaults(func(Fault) bool { return true })
		return nil
	case c.Request == nil:
		return s.Workloads().Release(c.Workload)
	}
	f, err := s.fault(*c.Request)
	if err == nil && !s.requests.endFaults(f.isLike) {
		err = errors.New("no such requests fail")
	}
	return err
}

// verbs are those of requests that can fail.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// fault returns a fault of requests that a person has named, with the names of the server.
func (s *Sandbox) fault(f Fault) (Fault, error) {
	switch {
	case f.Verb != "" && !slices.Contains(verbs, f.Verb):
		return f, fmt.Errorf("no request has the verb %q, only %s", f.Verb, strings.Join(verbs, ", "))
	case f.Code != 0 && (f.Code < http.StatusBadRequest || f.Code > 599):
		return f, fmt.Errorf("%d is no status of a failure, which is 400 to 599", f.Code)
	case f.Times < 0:
		return f, fmt.Errorf("requests cannot fail %d times", f.Times)
	}
	if f.Resource == "" {
		return f, nil
	}
	served := s.server.Named(strings.ToLower(f.Resource))
	if len(served) == 0 {
		return f, fmt.Errorf("the sandbox serves no resource %q", f.Resource)
	}
	if f.Resource = served[0].GVR.GroupResource().String(); !served[0].Namespaced {
		f.Namespace = ""
	}
	return f, nil
}
