// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"time"

	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
	"github.com/handwerk-dev/handwerk/engine/reconcile/history"
)

// keep adds a reconcile to the history.
func (o *Observer) keep(p *run, out Result) {
	r := o.History.Record()
	p.wokenBy(r)
	r.Err(out.Err)
	if out.Written != nil {
		r.Wrote()
	}
	for _, a := range out.Ended {
		one := history.Attempt{Handler: a.Handler.ID, Cause: string(a.Cause), Number: a.Attempt, Outcome: "success", Took: a.Took}
		if a.Err != nil {
			one.Outcome, one.Err = string(attempt.Outcome(a.Err, a.Trouble.After.Done, a.Trouble.After.Failed)), a.Err.Error()
		}
		r.Attempt(one)
	}
	for _, w := range out.Why {
		r.Skip(history.Skip{Handler: w.Handler, Cause: string(w.Cause), Reason: w.Reason.String(), Detail: w.Detail})
	}
	when := history.Moment{At: p.Now, Took: time.Since(p.Now)}
	if out.Due.After > 0 {
		when.Due = time.Now().Add(out.Due.After)
	}
	o.History.Keep(o.id(p.Key), when, r, p.Version)
}

// id returns the name of an object in the history.
func (o *Observer) id(key cache.ObjectName) history.ID {
	return history.ID{Resource: o.Resource, Key: key}
}

// wokenBy records the changes that woke a reconcile, none if its time had come.
func (p *run) wokenBy(r *history.Record) {
	c := p.Changes
	switch c.Event {
	case "":
	case apiwatch.Added:
		r.Woken("the object came")
	default:
		r.Woken("the object changed")
	}
	if c.Child {
		r.Woken("a child changed")
	}
	if c.Related != nil {
		r.Woken(p.relatedNews(c.Related))
	}
	if len(c.Granted) > 0 {
		r.Woken("a right was granted")
	}
}

// relatedNews names a related object that changed.
func (p *run) relatedNews(c *inbox.Related) string {
	relations := p.Rules.Spec.Relations()
	if c.All || len(c.Changes) == 0 || c.Changes[0].Relation >= len(relations) {
		return "a related object changed"
	}
	first := c.Changes[0]
	o, what := first.After, "changed"
	switch {
	case o == nil:
		o, what = first.Before, "was deleted"
	case first.Before == nil:
		what = "came"
	}
	if o == nil {
		return "a related object changed"
	}
	text := "related " + relations[first.Relation].Resource.Resource + " " + cache.MetaObjectToName(o).String() + " " + what
	if more := len(c.Changes) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
