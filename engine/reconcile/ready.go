// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// The reasons of the condition Ready beside those of handlers and of children.
const (
	allReady    = "AllReady"
	reconciling = "Reconciling"
	waiting     = "Waiting"
	filtered    = "Filtered"
)

// What keeps an object from being ready, the gravest first.
const (
	handlerFailed = iota
	handlerFails
	filterFails
	childFailed
	handlerWaits
	childUnready
	handlerOpen
	handlerFiltered
)

// mostMessage is how long the message may be, in bytes.
const mostMessage = 1024

// obstacle is something that keeps an object from being ready.
type obstacle struct {
	grade  int
	status metav1.ConditionStatus
	// reason and message are for the condition. Steady is how the message begins, where the rest may change with each attempt.
	reason, message, steady string
	// idle names the handler whose when is false, of an obstacle that is no more than that.
	idle string
	// mild: it does not make an object unready that was ready at this generation.
	mild bool
}

// Ready returns the condition that says whether all handlers are through with the object, and its children are ready. It is nil
// where no handler sees the object, where one sets the condition itself, and where nothing is known against what the condition says
// of this generation, as between two attempts.
func (p conditions) Ready() *metav1.Condition {
	said := ConditionOf(p.Object, dsl.Ready)
	found, sees, acts := p.obstacles()
	if !sees && said == nil {
		return nil
	}
	if !sees {
		found = append(found, obstacle{grade: handlerFiltered, status: metav1.ConditionUnknown, reason: filtered, message: "No handler sees the object."})
	}
	makers, children, more := p.unready()
	if acts && makers != nil {
		found = slices.DeleteFunc(found, func(o obstacle) bool { return o.idle != "" && !makers[o.idle] })
	}
	found = append(found, more...)
	found, news := p.grave(found, said)
	if !news {
		return nil
	}
	out := &metav1.Condition{Type: dsl.Ready, Status: metav1.ConditionTrue, Reason: allReady}
	if children > 0 {
		out.Message = "All children are ready."
	}
	if len(found) == 0 {
		return out
	}
	worst := slices.MinFunc(found, func(a, b obstacle) int { return a.grade - b.grade })
	out.Status, out.Reason, out.Message = worst.status, worst.reason, plain.Short(worst.message, mostMessage)
	before := ConditionText(said, "message")
	if worst.steady != "" && strings.HasPrefix(before, worst.steady) && ConditionText(said, "reason") == out.Reason {
		out.Message = before
	}
	return out
}

// grave leaves out the mild obstacles where the object was ready in this generation. It is no news if all are mild.
func (p conditions) grave(found []obstacle, said map[string]any) (rest []obstacle, news bool) {
	wasTrue := said != nil && said["status"] == string(metav1.ConditionTrue) && said["observedGeneration"] == p.Object.GetGeneration()
	if !wasTrue {
		return found, true
	}
	before := len(found)
	rest = slices.DeleteFunc(found, func(o obstacle) bool { return o.mild })
	return rest, len(rest) > 0 || before == 0
}

// obstacles are those of handlers. Sees reports whether there is a handler that is to bring the object about, and acts whether the
// when of one of them is true: then one that is filtered and has no children has nothing to do with the object, as of two handlers
// with opposite whens.
func (p conditions) obstacles() (out []obstacle, sees, acts bool) {
	for _, r := range p.Rules.Readers {
		said, known := p.saidBy(r)
		counts := r.Level() && (p.Jobs.Of(r) != nil || p.askFilters(p.Draft, r, askFor(r.Handler)).Keeps()) || known && said.status == metav1.ConditionUnknown
		sees = sees || counts
		acts = acts || counts && (!known || said.idle == "")
		if one := p.obstacleOf(r, counts, said, known); one != nil {
			out = append(out, *one)
		}
	}
	return out, sees, acts
}

// obstacleOf is that of one handler, nil for none. The handler's own condition counts while the handler sees the object.
func (p conditions) obstacleOf(r progress.Handler, counts bool, said obstacle, known bool) *obstacle {
	about := "Handler " + r.ID + ": "
	failing, fails := p.failingOf(r, about)
	switch {
	case fails && known && said.status == metav1.ConditionFalse && said.reason != waiting:
		said.grade = failing.grade
		return &said
	case fails:
		return &failing
	case counts && known && said.status != metav1.ConditionTrue:
		return &said
	}
	return openOf(p.Jobs.Of(r), counts, about)
}

// openOf is that of a handler which has something to do, and does not fail.
func openOf(j *Attempt, counts bool, about string) *obstacle {
	switch {
	case j == nil || j.Record.Done || !counts && !j.Cause.Lasting() || j.Cause.FromClock() || j.Cause == dsl.Event:
		return nil
	case j.Record.Waiting:
		return &obstacle{grade: handlerWaits, status: metav1.ConditionFalse, reason: waiting, message: about + j.Record.Message}
	}
	return &obstacle{grade: handlerOpen, status: metav1.ConditionFalse, reason: reconciling, message: about + "it is not through yet", mild: true}
}

// failingOf is how a handler fails. About is how the message begins.
func (p conditions) failingOf(r progress.Handler, about string) (out obstacle, fails bool) {
	standing := p.standingOf(r, false)
	out = obstacle{status: metav1.ConditionFalse, reason: standing.Reason, message: about + standing.Message, steady: about}
	switch standing.Reason {
	case Failed:
		out.grade = handlerFailed
	case Retried:
		out.grade = handlerFails
	case FilterFailed:
		out.grade = filterFails
	}
	return out, standing.Reason != ""
}

// saidBy is what a handler says of itself in a condition of its own.
func (p conditions) saidBy(r progress.Handler) (said obstacle, known bool) {
	if len(r.Known.Conditions) == 0 || !p.saysItself(r) {
		return said, false
	}
	c := ConditionOf(p.Current, r.Known.Conditions[0])
	said = obstacle{
		grade: handlerFails, status: metav1.ConditionStatus(ConditionText(c, "status")),
		reason: ConditionText(c, "reason"), message: ConditionText(c, "message"),
	}
	at := slices.IndexFunc(p.Patch.Conditions, func(c metav1.Condition) bool { return c.Type == r.Known.Conditions[0] })
	switch {
	case at >= 0:
		now := p.Patch.Conditions[at]
		said.status, said.reason, said.message = now.Status, now.Reason, now.Message
	case c == nil:
		return said, false
	}
	switch {
	case said.status == metav1.ConditionUnknown:
		said.grade, said.idle = handlerFiltered, r.ID
	case said.reason == waiting:
		said.grade = handlerWaits
	}
	return said, true
}

// unready returns which handlers have children, nil where that is not known, how many children there are, and those that are not
// ready.
func (p conditions) unready() (makers map[string]bool, n int, out []obstacle) {
	all, err := p.family.Reader().Shared().All()
	if err != nil {
		return nil, 0, []obstacle{{
			grade: handlerOpen, status: metav1.ConditionFalse, reason: reconciling, message: "The children cannot be read yet.", mild: true,
		}}
	}
	makers = map[string]bool{}
	for _, child := range all {
		makers[child.Handler] = true
		if child.Ownership == dsl.Unowned {
			continue // no handler wants it any more
		}
		n++
		if p.judged(child.ChildSpec) && child.Object.GetDeletionTimestamp() == nil {
			continue
		}
		is, err := dsl.ReadinessOf(child.Object)
		switch {
		case err != nil:
			out = append(out, obstacle{grade: childUnready, status: metav1.ConditionFalse, reason: "StatusUnknown", message: child.Object.GetKind() + " " + child.Object.GetName() + ": " + err.Error()})
		case is.Ready:
		case is.Failed:
			out = append(out, obstacle{grade: childFailed, status: metav1.ConditionFalse, reason: is.Reason, message: is.Stage})
		default:
			out = append(out, obstacle{grade: childUnready, status: metav1.ConditionFalse, reason: is.Reason, message: is.Stage})
		}
	}
	return makers, n, out
}

// judged reports whether a child's handler says itself when it is ready.
func (p *run) judged(spec dsl.ChildSpec) bool {
	for _, made := range p.Rules.Spec.Makes {
		if made.Judged && made.Name == spec.Name {
			return true
		}
	}
	return false
}
