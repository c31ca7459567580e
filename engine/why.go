// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// answerWait is how long a question waits for a worker. After that it is answered from the history.
const answerWait = 300 * time.Millisecond

// Why says why the operator did something to an object, or did not. It returns an error if the operator does not handle
// such objects, or if the process does not lead.
func (e *Engine) Why(ctx context.Context, q why.Question) (*why.Answer, error) {
	r, err := e.resourceNamed(q.Resource)
	if err != nil {
		return nil, err
	}
	key := cache.ObjectName{Namespace: q.Namespace, Name: q.Name}
	if r.own.Known() && !r.own.Resource().Namespaced {
		key.Namespace = ""
	}
	out, err := r.why(ctx, key)
	if err != nil {
		return nil, err
	}
	if q.History {
		out.History = r.controller.History(key)
	}
	out.Rights = e.access.MissingFor(r.spec.Name.Resource, key.Namespace)
	out.Sources = r.badSources()
	out.Judge()
	return out, nil
}

// badSources lists the problems of the sources of the resource, its children and its related objects.
func (r *resource) badSources() (out []string) {
	by := r.engine.access.AccountSuffix()
	for _, f := range r.Sources() {
		if c := f.Check(f.Name().String(), by); c.State != ops.Pass {
			out = append(out, c.Name+": "+c.Message)
		}
	}
	return out
}

// resourceNamed returns the resource that a person names as kubectl does. If several have the name, it returns an error.
func (e *Engine) resourceNamed(text string) (*resource, error) {
	var names, meant []string
	var out *resource
	for r := range e.resources.All {
		if r.name == text {
			return r, nil
		}
		names = append(names, r.name)
		if r.called(text) {
			out, meant = r, append(meant, r.name)
		}
	}
	switch len(meant) {
	case 0:
	case 1:
		return out, nil
	default:
		return nil, unanswered(http.StatusBadRequest, "looking for %s: operator %s handles %s: name the one that you mean", text, e.op.Name, strings.Join(meant, " and "))
	}
	return nil, unanswered(http.StatusNotFound, "looking for %s: operator %s does not handle it; it %s", text, e.op.Name, e.does(names))
}

// does returns a text about the resources that the operator handles, and about those that it has rules for.
func (e *Engine) does(handled []string) string {
	var ruled, out []string
	for _, r := range e.op.Resources() {
		if name := r.Name.String(); len(r.Admissions()) > 0 && !slices.Contains(handled, name) {
			ruled = append(ruled, name)
		}
	}
	if len(handled) > 0 {
		out = append(out, "handles "+strings.Join(handled, ", "))
	}
	if len(ruled) > 0 {
		out = append(out, "has rules about requests to write "+strings.Join(ruled, ", "))
	}
	return cmp.Or(strings.Join(out, ", and "), "handles no objects")
}

// called reports whether a person means the resource: by its plural, its kind, its singular or a short name, with or
// without version and group.
func (r *resource) called(text string) bool {
	name, served := r.spec.Name, r.own.Resource()
	head, rest, _ := strings.Cut(text, ".")
	head = strings.ToLower(head)
	if head != name.Resource && head != strings.ToLower(served.Kind) && head != served.Singular && !slices.Contains(served.Short, head) {
		return false
	}
	version := served.GVR.Version
	return slices.Contains([]string{"", name.Group, version, version + "." + name.Group}, rest)
}

// why answers a question about an object.
func (r *resource) why(ctx context.Context, key cache.ObjectName) (*why.Answer, error) {
	if _, found := r.own.Get(key); !found {
		out := r.controller.Answer(key)
		out.Handlers, out.Unseen = nil, r.unseen(ctx, key)
		return out, nil
	}
	if run, runs := r.controller.Running.Of(key); runs && time.Since(run.Begun) > answerWait {
		return r.without(key), nil
	}
	answer, withdraw := r.controller.Observer.Questions.Ask(key)
	defer withdraw()
	if !r.inbox.EnqueueFirst(key) {
		return nil, unanswered(http.StatusServiceUnavailable, "asking about %s: this process does not lead", key)
	}
	wait := time.NewTimer(answerWait)
	defer wait.Stop()
	select {
	case out := <-answer:
		return out, nil
	case <-wait.C:
		return r.without(key), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// without answers from the history, if no worker looks at the object in time.
func (r *resource) without(key cache.ObjectName) *why.Answer {
	out := r.controller.Answer(key)
	switch run, runs := r.controller.Running.Of(key); {
	case runs && run.Handler != "":
		out.Without = fmt.Sprintf("this is from the last reconciles: handler %s has been running for %s", run.Handler, time.Since(run.Entered).Truncate(time.Second))
	case runs:
		out.Without = fmt.Sprintf("this is from the last reconciles: a reconcile of the object has been running for %s", time.Since(run.Begun).Truncate(time.Second))
	default:
		out.Without = "this is from the last reconciles: all workers of the resource are busy"
	}
	return out
}

// unseen says why the operator does not see an object.
func (r *resource) unseen(ctx context.Context, key cache.ObjectName) string {
	if now := r.own.Status(); now.Phase != source.Running {
		return strings.TrimSuffix(fmt.Sprintf("%s are not watched: %s: %s", r.name, now.Phase, now.Message), ": ")
	}
	if r.own.Informer(key.Namespace) == nil {
		return fmt.Sprintf("namespace %s is not in the operator's scope: %s", key.Namespace, source.EncodeScope(r.engine.op.Scope))
	}
	live, err := r.engine.server.Read(ctx, r.own.Resource().GVR, key)
	switch {
	case err != nil:
		return "the cache does not have it, and it cannot be read: " + err.Error()
	case live == nil:
		return why.NoObject
	}
	if chosen, err := labels.Parse(r.spec.LabelSelector); err == nil && !chosen.Matches(labels.Set(live.GetLabels())) {
		return fmt.Sprintf("the resource's label selector (%s) does not select it: %s", r.spec.LabelSelector, labelled(live.GetLabels()))
	}
	if _, err := fields.ParseSelector(r.spec.FieldSelector); err == nil && r.spec.FieldSelector != "" {
		return fmt.Sprintf("the cache does not have it: the resource's field selector (%s) may not select it", r.spec.FieldSelector)
	}
	return "the cache does not have it yet"
}

// labelled formats the labels of an object.
func labelled(set map[string]string) string {
	if len(set) == 0 {
		return "it has no labels"
	}
	return "its labels are " + labels.FormatLabels(set)
}

// unanswered returns the error for a question without an answer, with an HTTP code.
func unanswered(code int32, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: fmt.Sprintf(format, args...)}}
}
