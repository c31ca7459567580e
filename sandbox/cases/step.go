// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// step does a step, and lets the operator do what follows from it.
func (r *runner) step(s *step) error {
	err := r.do(s)
	if errors.Is(err, errStop) {
		return err
	}
	if err != nil {
		r.fail(s.at, err.Error(), "")
		return errStop
	}
	if s.Expect == nil {
		r.calm()
	}
	return nil
}

func (r *runner) do(s *step) error {
	switch {
	case s.Apply != nil:
		return r.refusable(s, func() error { return r.each(s.Apply, r.apply) })
	case s.Create != nil:
		return r.refusable(s, func() error { return r.each(s.Create, r.create) })
	case s.Patch != nil:
		return r.refusable(s, func() error { return r.patches(s) })
	case s.Delete != nil:
		return r.refusable(s, func() error { return r.deletes(s) })
	case s.Advance > 0:
		r.cluster.Advance(s.Advance)
	case s.Until != "":
		return r.until(s)
	case s.Ready != nil:
		return r.ready(s)
	case s.Fail != nil:
		return r.failNext(s.Fail, s.at.Key("fail"))
	case s.Restart:
		r.process.Restart()
	case s.Crash != nil:
		r.armed = s.at
		r.process.CrashAfter(s.Crash.After)
	case s.Upgrade != nil:
		return r.upgrade(s)
	case s.Workload != nil:
		return r.arrange(s.Workload)
	case s.Expect != nil:
		r.expect(s.Expect)
	}
	return nil
}

// refused is an error of the API server about what a case writes.
type refused struct{ error }

// refusable does a step that the API server may be expected to refuse.
func (r *runner) refusable(s *step, do func() error) error {
	r.warnings.take() // those of other clients' steps
	err := do()
	if err == nil || s.Refused != "" {
		if missed := r.warned(s); missed != nil {
			return missed
		}
	}
	no, is := errors.AsType[refused](err)
	switch {
	case s.Refused == "":
		return err
	case err == nil:
		return fmt.Errorf("the API server is expected to refuse this, and it does not: %s", s.Refused)
	case !is:
		return err
	}
	if !strings.Contains(no.Error(), s.Refused) {
		r.fail(s.at.Key("refused"), "the API server refuses this with other words", fmt.Sprintf("- %s\n+ %s", s.Refused, err), edit(s.at.Key("refused"), err.Error())...)
	}
	return nil
}

// until lets time pass until an expression is true.
func (r *runner) until(s *step) error {
	e, err := r.compile(string(s.Until))
	if err != nil {
		return fmt.Errorf("until: %w", err)
	}
	var holds bool
	if r.wait(s.within(), func() bool {
		holds, err = r.holds(e, nil)
		return holds
	}) {
		return nil
	}
	why := "it is false"
	if err != nil {
		why = err.Error()
	}
	r.fail(s.at.Key("until"), fmt.Sprintf("within %s it does not become true: %s", s.within(), s.Until), why+"\n"+r.mentioned(e, string(s.Until)))
	return errStop
}

func (s *step) within() time.Duration {
	if s.Within > 0 {
		return s.Within
	}
	return time.Hour
}

// wait lets time pass until something holds, and reports whether it does within a time.
func (r *runner) wait(most time.Duration, holds func() bool) bool {
	begun, tick := time.Now(), time.Second
	for !holds() {
		left := most - time.Since(begun)
		if left <= 0 {
			return false
		}
		r.cluster.Advance(min(tick, left))
		r.revive()
		if time.Since(begun) > time.Minute {
			tick = 10 * time.Second
		}
	}
	return true
}

// ready lets time pass until objects are ready.
func (r *runner) ready(s *step) error {
	for _, name := range s.Ready {
		var why string
		if r.wait(s.within(), func() bool {
			var ready bool
			ready, why = r.isReady(name)
			return ready
		}) {
			continue
		}
		r.fail(s.at.Key("ready"), fmt.Sprintf("within %s it does not become ready: %s", s.within(), name), why)
		return errStop
	}
	return nil
}

// upgrade starts another version of the operator in the place of the one that runs.
func (r *runner) upgrade(s *step) error {
	next, err := r.suite.load(r.file.paths(s.Upgrade))
	if err != nil {
		r.fail(s.at.Key("upgrade"), "the operator cannot be read", err.Error())
		return errStop
	}
	if err := r.process.Stop(); err != nil {
		return fmt.Errorf("stopping the operator: %w", err)
	}
	if err := r.installAll(next, s.at.Key("upgrade")); err != nil {
		return err
	}
	r.start(next)
	return nil
}

// failNext lets the next requests of the operator fail.
func (r *runner) failNext(f *failing, at form.Path) error {
	resource, subresource, nested := strings.Cut(f.Resource, "/")
	served, err := r.resource(resource)
	if err != nil {
		return err
	}
	name := served.GVR.Resource + "." + served.GVR.Version + "." + served.GVR.Group
	name = strings.TrimSuffix(name, ".")
	if nested {
		name += "/" + subresource
	}
	r.faults = append(r.faults, fault{at, string(f.Verb), name, max(1, f.Times)})
	for range max(1, f.Times) {
		if f.With == lost {
			r.cluster.LoseNext(string(f.Verb), name)
			continue
		}
		r.cluster.FailNext(string(f.Verb), name, f.With.error(served.GVR.GroupResource()))
	}
	return nil
}

// fault is a step that lets requests fail.
type fault struct {
	at             form.Path
	verb, resource string
	times          int
}

// unmet finds steps whose faults no request has met. Requests meet the oldest ones first.
func (r *runner) unmet() {
	later := map[string]int{}
	for _, f := range slices.Backward(r.faults) {
		key := f.verb + " " + f.resource
		if later[key] += f.times; r.cluster.Unmet(f.verb, f.resource) >= later[key] {
			r.fail(f.at, "no request has failed: the operator sent no "+f.verb+" of "+f.resource, "")
		}
	}
}

// lost is the cause of a response that is lost.
const lost = "Lost"

// answers are the errors of the API server by their reasons.
var answers = map[string]func(schema.GroupResource) error{
	"AlreadyExists": func(r schema.GroupResource) error { return apierrors.NewAlreadyExists(r, "") },
	"Conflict": func(r schema.GroupResource) error {
		return apierrors.NewConflict(r, "", errors.New("the object has been modified"))
	},
	"Forbidden":     func(r schema.GroupResource) error { return apierrors.NewForbidden(r, "", errors.New("a test says so")) },
	"InternalError": func(schema.GroupResource) error { return apierrors.NewInternalError(errors.New("a test says so")) },
	"Invalid": func(r schema.GroupResource) error {
		return apierrors.NewInvalid(schema.GroupKind{Group: r.Group, Kind: r.Resource}, "", nil)
	},
	"NotFound":            func(r schema.GroupResource) error { return apierrors.NewNotFound(r, "") },
	"ServerTimeout":       func(r schema.GroupResource) error { return apierrors.NewServerTimeout(r, "", 1) },
	"ServiceUnavailable":  func(schema.GroupResource) error { return apierrors.NewServiceUnavailable("a test says so") },
	"TooManyRequests":     func(schema.GroupResource) error { return apierrors.NewTooManyRequests("a test says so", 1) },
	"Unauthorized":        func(schema.GroupResource) error { return apierrors.NewUnauthorized("a test says so") },
	"NotServed":           func(schema.GroupResource) error { return kit.ErrPage },
	"ConnectionRefused":   func(schema.GroupResource) error { return kit.ErrRefused },
	"UnexpectedEndOfFile": func(schema.GroupResource) error { return io.ErrUnexpectedEOF },
	"RequestTooLarge": func(r schema.GroupResource) error {
		return apierrors.NewGenericServerResponse(http.StatusRequestEntityTooLarge, "", r, "", "a test says so", 0, true)
	},
}

// causes are the words for errors of requests.
func causes() []string { return append(slices.Sorted(maps.Keys(answers)), lost) }

func (c cause) error(r schema.GroupResource) error {
	if c == "" {
		c = "InternalError"
	}
	return answers[string(c)](r)
}

// arrange says what becomes of workloads, by name. Names may be globs.
func (r *runner) arrange(all map[string]stage) error {
	for _, name := range sortedKeys(all) {
		parts := strings.Split(name, "/")
		rule := workloads.Rule{Hold: all[name].Hold, Fail: all[name].Fail, Delay: all[name].Delay}
		served, err := r.resource(parts[0])
		if err != nil {
			return err
		}
		rule.Kind = served.GVR.Resource
		switch len(parts) {
		case 1:
		case 2:
			rule.Name = parts[1]
		case 3:
			rule.Namespace, rule.Name = parts[1], parts[2]
		default:
			return fmt.Errorf("want workloads as in deployments/web or deployments/other-namespace/*, found %q", name)
		}
		r.plan.Set(rule)
	}
	return nil
}

// deletes deletes objects.
func (r *runner) deletes(s *step) error {
	for _, name := range s.Delete {
		p, err := r.place(name)
		if err != nil {
			return err
		}
		if err := r.reach(p).Delete(context.Background(), p.name, metav1.DeleteOptions{}); err != nil {
			return refused{err}
		}
	}
	return nil
}
