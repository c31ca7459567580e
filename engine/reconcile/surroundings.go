// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
	"github.com/handwerk-dev/handwerk/engine/reconcile/machine"
)

// around fills in the answer beside the handlers: children, machines, conditions and the deletion.
func (p *run) around(a *why.Answer, out Result) {
	members := p.family.Members()
	for _, m := range members {
		a.Children = append(a.Children, p.childAccount(m))
	}
	slices.SortStableFunc(a.Children, func(x, y why.Child) int { return cmp.Compare(rank(x), rank(y)) })
	for _, t := range p.family.Patched() {
		a.Targets = append(a.Targets, why.Target{Kind: t.Kind.Kind, Namespace: t.Namespace, Name: t.Name, Handler: t.Handler, Entry: t.Key, Manager: t.Manager})
	}
	object := p.bareDraft.Current
	if out.Written != nil {
		object = out.Written
	}
	if c := conditions.Of(object, dsl.Ready); c != nil && conditions.Text(c, "status") != string(metav1.ConditionTrue) {
		a.Conditions = append(a.Conditions, why.Condition{
			Type: dsl.Ready, Status: conditions.Text(c, "status"), Reason: conditions.Text(c, "reason"), Message: conditions.Text(c, "message"),
		})
	}
	for _, r := range p.Rules.Readers {
		if r.Machine != nil {
			about := p.askedAbout(r)
			about.Object = object
			a.Machines = append(a.Machines, machine.Account(r.Handler, object, p.Rules.Operator.Prefix(), about))
		}
	}
	if a.Deletion != nil {
		p.deletionAccount(a, out, members)
	}
}

// rank orders children: children with problems come first.
func rank(c why.Child) int {
	return slices.Index([]string{"gone", "ready", "unseen", "not ready", "failed", "deleting"}, c.State) * -1
}

// childAccount describes a child.
func (p *run) childAccount(m children.Member) why.Child {
	out := why.Child{Kind: m.Kind.Kind, Namespace: m.Namespace, Name: m.Name, Handler: m.Spec.Handler, As: m.Spec.Name, By: "reference"}
	if m.Listed {
		out.By = "record"
	}
	if m.Object == nil {
		if out.State, out.Says = "unseen", "the object lists it, and no cache shows it"; p.Deletion != "" {
			out.State, out.Says = "gone", ""
		}
		return out
	}
	if at := m.Object.GetDeletionTimestamp(); at != nil {
		out.State, out.Says = "deleting", finalizersOf(m)
		return out
	}
	is, err := dsl.ReadinessOf(m.Object)
	out.Is(p.withPod(m.Object, is), err)
	return out
}

// deletionAccount lists what holds the deletion.
func (p *run) deletionAccount(a *why.Answer, out Result, members []children.Member) {
	d := a.Deletion
	if at := slices.IndexFunc(d.Finalizers, p.isOwnFinalizer); at >= 0 {
		d.Own = d.Finalizers[at]
		held, waiting := p.heldByHandlers(out)
		d.Held = slices.Concat(held, heldByChildren(members), heldByTargets(a.Targets), waiting)
		if len(d.Held) == 0 {
			d.Held = append(d.Held, "finalizer "+d.Own+", which is this operator's: it is not known yet whether all children are gone")
		}
	}
	for _, f := range d.Finalizers {
		if f != d.Own {
			d.Held = append(d.Held, "finalizer "+f+", which is not this operator's")
		}
	}
}

// heldByHandlers returns the daemons and handlers that hold the deletion. Handlers that wait for others are listed
// apart.
func (p *run) heldByHandlers(out Result) (held, waiting []string) {
	for _, r := range p.Rules.Daemons {
		if at := p.Daemons.Account(p.Key, r.Handler); at.Runs && !at.Late && !r.NoFinalizer {
			held = append(held, "daemon "+r.ID+", which has not ended")
		}
	}
	for _, r := range p.Rules.Readers {
		text := p.holding(out, r)
		switch j := out.Attempts.Of(r); {
		case text == "":
		case j != nil && j.Record.Waiting:
			waiting = append(waiting, text)
		default:
			held = append(held, text)
		}
	}
	return held, waiting
}

// heldByChildren returns the children that hold the deletion.
func heldByChildren(members []children.Member) (held []string) {
	for _, m := range members {
		if m.Holds && m.Object != nil {
			if held = append(held, "child "+m.Describe()+", which still exists"); m.Object.GetDeletionTimestamp() != nil {
				held[len(held)-1] = "child " + m.Describe() + ", which is being deleted; " + finalizersOf(m)
			}
		}
	}
	return held
}

// heldByTargets returns the patched objects that hold the deletion.
func heldByTargets(targets []why.Target) (held []string) {
	for _, t := range targets {
		held = append(held, "fields of "+t.People()+", which are not given back yet")
	}
	return held
}

// finalizersOf names the finalizers of a child.
func finalizersOf(m children.Member) string {
	if all := m.Object.GetFinalizers(); len(all) > 0 {
		return "it has finalizers: " + strings.Join(all, ", ")
	}
	return "it has no finalizers"
}

// holding says how a handler holds the deletion; empty if it does not.
func (p *run) holding(out Result, r progress.Handler) string {
	if p.holdsUp(p.bareDraft, r) {
		return fmt.Sprintf("handler %s, which failed for good: %s", r.ID, p.progress.Entry(r).Try.Message)
	}
	if p.memory.Filters.Of(r.Handler) != "" && r.On(dsl.Delete) {
		return fmt.Sprintf("handler %s, whose filter failed: %s", r.ID, p.memory.Filters.Of(r.Handler))
	}
	if j := out.Attempts.Of(r); j != nil && j.Cause == dsl.Delete && !j.Record.Done {
		if j.Record.Message != "" {
			return fmt.Sprintf("handler %s, which has not finished: %s", r.ID, j.Record.Message)
		}
		return "handler " + r.ID + ", which has not finished"
	}
	return ""
}

// daemonAccount says whether a daemon runs.
func (p *run) daemonAccount(r progress.Handler) why.Handler {
	at := p.Daemons.Account(p.Key, r.Handler)
	out := why.Handler{ID: r.ID, Daemon: true, Clauses: r.Explain(p.askedAbout(r))}
	says := "does not run"
	switch {
	case at.Runs && at.Late:
		says = "was asked to stop (" + string(at.Stop) + "), and still runs; nothing waits for it any more"
	case at.Runs && at.Stop != "":
		says = "was asked to stop (" + string(at.Stop) + "), and has not ended yet"
	case at.Runs:
		says = "runs"
	case at.Over:
		says = "has ended, and is not run again for this object"
	}
	out.Says = "daemon " + r.ID + " " + says
	return out
}
