// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package probe has the function of samples/daemon.
package probe

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// probe is an address that is checked periodically.
type probe struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		URL    string          `json:"url"`
		Period metav1.Duration `json:"period"`
	} `json:"spec"`
	Status struct {
		State   string `json:"state,omitempty"`
		Message string `json:"message,omitempty"`
	} `json:"status"`
}

// Watch is a daemon: it checks periodically whether an address answers, and reports the
// result in the status. When the address changes, it checks it at once.
func Watch(ctx context.Context, r *dsl.TypedDaemonRequest[probe]) error {
	for {
		current, err := r.Current()
		if err != nil {
			return err
		}
		state, message := ask(ctx, current.Spec.URL)
		if ctx.Err() != nil {
			return nil // an interrupted check is not a result
		}
		err = r.Change(ctx, func(p *probe) { p.Status.State, p.Status.Message = state, message })
		if err != nil {
			return err
		}
		select {
		case <-time.After(cmp.Or(current.Spec.Period.Duration, 10*time.Second)):
		case <-r.Changes():
		case <-ctx.Done():
			return nil
		}
	}
}

// ask checks an address, for at most 5 s.
func ask(ctx context.Context, url string) (state, message string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "Down", err.Error()
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "Down", err.Error()
	}
	_ = answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return "Down", fmt.Sprintf("it answers %s", answer.Status)
	}
	return "Up", ""
}

// Functions registers the function.
func Functions(r *actions.Registry) {
	r.Function(dsl.Function{
		Name: "probe.Watch", Doc: "asks an address time and again, and says in the status whether it answers",
		Daemon: dsl.TypedDaemon(Watch), Needs: []dsl.Need{dsl.MustParseNeed("patch", "self/status")},
	})
}

// Operator is operator.yaml written in Go.
func Operator() *dsl.Operator {
	op := dsl.New("daemon")
	op.Resource("probes.v1alpha1.samples.handwerk.dev", func(p *dsl.Resource) {
		p.Daemon("watch", dsl.TypedDaemon(Watch), dsl.When(awake), dsl.StopWithin(10*time.Second), dsl.Needs("patch", "self/status"))
	})
	return op
}

// awake reports whether a Probe is not suspended.
func awake(s *dsl.Subject) (bool, error) {
	var suspended bool
	err := s.Into("spec.suspend", &suspended)
	return !suspended, err
}
