// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"

	"github.com/handwerk-dev/handwerk/sandbox/server/policy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// invocation is a policy that changes objects, with a binding and the name of a parameter.
type invocation struct {
	policy  *policy.Mutating
	binding *policy.Binding
	param   string
}

// round records the changes of mutating policies to the object of a request. Some of them see it again if others may have changed it since.
type round struct {
	// again: it is the second one. A policy is in it if it was in the first one.
	again   bool
	invoked map[invocation]bool
	// changed: a policy has changed the object, or may have.
	changed bool
}

// reshape lets mutating policies change the object of a write, and returns it as it is then.
func (s *Server) reshape(t *table, r Request, old, next *unstructured.Unstructured, round *round) (*unstructured.Unstructured, error) {
	if !seenByPolicies(t, r) || len(s.admitted().mutating) == 0 || next == nil {
		return next, nil
	}
	w := &reshaping{Server: s, table: t, request: r, old: old, next: next, round: round}
	call := w.call()
	for _, each := range s.admitted().mutating {
		match := each.policy.Matches(call)
		if match.Err == nil && match.Matches {
			match.Err = s.knowsParams(each.policy)
		}
		if match.Err != nil {
			each.policy.Add(&w.failures, nil, match.Err, true)
			continue
		} else if !match.Matches {
			continue
		}
		for _, b := range each.bindings {
			params, err := s.paramsFor(each.policy, b, call)
			if err != nil {
				each.policy.Add(&w.failures, b, err, true)
			}
			for _, param := range params {
				w.todo = append(w.todo, work{each.policy, b, param, match.Version})
			}
		}
	}
	for _, each := range w.todo {
		if err := w.do(each); err != nil {
			return nil, err
		}
	}
	return w.next, w.failures.Refusal(w.call())
}

// work is a policy that is to run, with a binding and a parameter.
type work struct {
	policy  *policy.Mutating
	binding *policy.Binding
	param   runtime.Object
	in      policy.Version
}

// key tells pieces of work apart.
func (w work) key() invocation {
	out := invocation{policy: w.policy, binding: w.binding}
	if o, is := w.param.(*unstructured.Unstructured); is {
		out.param = o.GetNamespace() + "/" + o.GetName()
	}
	return out
}

// reshaping is one run of mutating policies.
type reshaping struct {
	*Server
	table     *table
	request   Request
	old, next *unstructured.Unstructured
	round     *round
	todo      []work
	failures  policy.Failures
}

// subject returns the write as the policies see it. An object whose name the server makes has no name yet.
func (w *reshaping) subject() subject {
	next := w.next
	if w.old == nil && w.request.prefix != "" {
		next = next.DeepCopy()
		unstructured.RemoveNestedField(next.Object, "metadata", "name")
	}
	return w.table.subjectOf(w.request, w.old, next)
}

func (w *reshaping) call() *policy.Call { return w.callOf(w.table, w.request, w.subject()) }

// do lets a policy do its work. An error is the response to the request.
func (w *reshaping) do(each work) error {
	ctx, call := w.request.reply.request.Context(), w.call()
	applies, err := each.policy.Applies(ctx, call, w.table.objectsIn(each.in, w.subject()), each.param)
	if err != nil {
		each.policy.Add(&w.failures, each.binding, err, false)
	}
	if err != nil || !applies || w.round.again && !w.round.invoked[each.key()] {
		return nil
	}
	w.decided(each.policy.Name)
	for i := range each.policy.Len() {
		err := w.mutate(ctx, each, i)
		var status *apierrors.StatusError
		switch {
		case errors.As(err, &status):
			return status
		case err != nil:
			each.policy.Add(&w.failures, each.binding, err, false)
		default:
			w.round.changed = true
		}
	}
	w.settles(each)
	if each.policy.Reinvoked && !w.round.again {
		w.round.invoked[each.key()] = true
	}
	return nil
}

// settles tells of a policy that would change the object again. The object stays as it is.
func (w *reshaping) settles(each work) {
	if w.unsettled == nil {
		return
	}
	first := w.next
	defer func() { w.next = first }()
	w.next = first.DeepCopy()
	ctx := w.request.reply.request.Context()
	if applies, err := each.policy.Applies(ctx, w.call(), w.table.objectsIn(each.in, w.subject()), each.param); err != nil || !applies {
		return
	}
	for i := range each.policy.Len() {
		if w.mutate(ctx, each, i) != nil {
			return
		}
	}
	if !reflect.DeepEqual(w.next.Object, first.Object) {
		w.unsettled(each.policy.Name)
	}
}

// mutate does one mutation, and brings the object into the form of its schema.
func (w *reshaping) mutate(ctx context.Context, each work, i int) error {
	about := w.subject()
	in := w.table.objectsIn(each.in, about)
	types := w.owners.managing(w.table, w.requestIn(in)).types
	tree, err := each.policy.Mutate(ctx, w.callOf(w.table, w.request, about), in, each.param, i, types)
	if err == nil && in.Kind != about.kind && !w.table.custom { // a real server fails, too
		err = fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion", in.Kind.Version, in.Kind.Kind, about.kind.Version, about.kind.Kind)
	}
	if err != nil {
		return err
	}
	out := &unstructured.Unstructured{Object: tree}
	if w.request.Subresource == "scale" {
		w.next, err = w.table.scaled(w.next, out)
		return err
	}
	unstructured.RemoveNestedField(out.Object, "metadata", "creationTimestamp")
	if from, found := w.next.Object["metadata"].(map[string]any)["creationTimestamp"]; found {
		out.Object["metadata"].(map[string]any)["creationTimestamp"] = from
	}
	if out.GetName() == "" {
		out.SetName(w.next.GetName())
	}
	quiet := w.requestIn(in)
	quiet.options, quiet.twice, quiet.contentType = url.Values{"fieldValidation": {metav1.FieldValidationIgnore}}, nil, ""
	if err := w.decode(w.table, quiet, out, w.old); err != nil {
		return err
	}
	w.next = w.table.inVersion(out, w.table.hub(w.request))
	return nil
}

// requestIn returns the request as if it were for the version that a policy sees.
func (w *reshaping) requestIn(in policy.Version) Request {
	out := w.request
	out.Resource = in.Resource
	return out
}
