// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// The reasons of the condition Ready beside those of handlers and of children.
const (
	allReady = "AllReady"
	unready  = "Reconciling"
	waiting  = "Waiting"
	filtered = "Filtered"
)

// grade is how grave an obstacle is, the gravest first.
type grade int

const (
	handlerFailed grade = iota
	handlerFails
	filterFails
	childFailed
	handlerWaits
	childUnready
	handlerOpen
	handlerFiltered
)

// mostMessage is the length of the longest message, in bytes.
const mostMessage = 1024

// Input is what the condition Ready and those beside it are computed from.
type Input struct {
	Object *unstructured.Unstructured
	// Was is the digest of the condition Ready that the operator has written last; zero if that is not known.
	Was uint64
	// Set are conditions that handlers set in this reconcile. The engine leaves conditions of these types alone.
	Set      []metav1.Condition
	Handlers []Handler
	// Children are the object's children. Unread: they cannot be read yet.
	Children []Child
	Unread   bool
}

// Child is a child of the object.
type Child struct {
	// Handler is the id of the handler that applies the child. Unwanted: no handler wants the child any more.
	Handler  string
	Unwanted bool
	dsl.Readiness
}

// obstacle is something that keeps an object from being ready.
type obstacle struct {
	grade  grade
	status metav1.ConditionStatus
	// reason and message are for the condition. steady is the beginning of a message whose rest may change with each attempt.
	reason, message, steady string
	// idle names the handler whose when is false, if that is all.
	idle string
	// mild: an object that is ready in this generation stays so.
	mild bool
}

// Summary returns the condition Ready, which says whether all handlers are through with the object, and its children are ready. It
// also returns Reconciling or Stalled if one of them has to stand beside it. A condition without a status has to be removed. The list
// is empty if no handler sees the object and it has no condition Ready, and if all stay as they are, as between two attempts.
func Summary(in Input) []metav1.Condition {
	ready, worst := in.ready()
	if ready == nil {
		return nil
	}
	return in.beside([]metav1.Condition{*ready}, worst.kstatus())
}

// Withdrawn returns the removal of the conditions Reconciling and Stalled, for an object whose condition Ready is no longer the engine's.
func Withdrawn(in Input) []metav1.Condition { return in.beside(nil, "") }

// beside adds the condition of one type, with the reason and message of Ready, and the removal of the other one.
func (in Input) beside(out []metav1.Condition, wanted string) []metav1.Condition {
	for _, kind := range []string{Reconciling, Stalled} {
		there := Of(in.Object, kind)
		switch {
		case slices.ContainsFunc(in.Set, func(c metav1.Condition) bool { return c.Type == kind }), there != nil && !in.owns(there):
			// Somebody else keeps the condition.
		case kind == wanted:
			out = append(out, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: out[0].Reason, Message: out[0].Message})
		case there != nil:
			out = append(out, metav1.Condition{Type: kind})
		}
	}
	return out
}

// owns reports whether the engine has set a condition beside Ready: then both have one reason and one message.
func (in Input) owns(c map[string]any) bool {
	like := digest(string(metav1.ConditionFalse), c["reason"], c["message"])
	ready := Of(in.Object, dsl.Ready)
	return ready == nil || like == Digest(ready) || like == in.Was
}

// ready returns the condition Ready, and the gravest obstacle; both are nil if the condition stays as it is.
func (in Input) ready() (*metav1.Condition, *obstacle) {
	found, sees, acts := in.ofHandlers()
	before := Of(in.Object, dsl.Ready)
	if !sees && before == nil {
		return nil, nil
	}
	if !sees {
		found = append(found, obstacle{grade: handlerFiltered, status: metav1.ConditionUnknown, reason: filtered, message: "No handler sees the object."})
	}
	if acts && !in.Unread {
		found = slices.DeleteFunc(found, func(o obstacle) bool { return o.idle != "" && !in.makes(o.idle) })
	}
	children, n := in.ofChildren()
	found, news := in.grave(append(found, children...), before)
	if !news {
		return nil, nil
	}
	out := &metav1.Condition{Type: dsl.Ready, Status: metav1.ConditionTrue, Reason: allReady}
	if n > 0 {
		out.Message = "All children are ready."
	}
	if len(found) == 0 {
		return out, nil
	}
	worst := slices.MinFunc(found, func(a, b obstacle) int { return int(a.grade - b.grade) })
	out.Status, out.Reason, out.Message = worst.status, worst.reason, plain.Short(worst.message, mostMessage)
	said := Text(before, "message")
	if worst.steady != "" && strings.HasPrefix(said, worst.steady) && Text(before, "reason") == out.Reason {
		out.Message = said
	}
	return out, &worst
}

// kstatus returns the type of the condition that stands beside Ready because of the obstacle; empty for none. The reasons of a
// handler's own condition are those of apply: it is tried again, and these do not go away by themselves.
func (o *obstacle) kstatus() string {
	if o == nil || o.status == metav1.ConditionUnknown {
		return ""
	}
	stalled := false
	switch o.grade {
	case handlerFailed, childFailed:
		stalled = true
	case filterFails:
		stalled = why.WhenFails.NeedsPerson()
	case handlerFails:
		switch o.reason {
		case "NotOwned", "NameCollision", "Immutable", "Invalid", "Denied", "Forbidden", "TooMany", "TooLarge":
			stalled = true
		}
	}
	if stalled {
		return Stalled
	}
	return Reconciling
}

// grave leaves out the mild obstacles if the object is ready in this generation. It is no news if all are mild.
func (in Input) grave(found []obstacle, before map[string]any) (rest []obstacle, news bool) {
	if Text(before, "status") != string(metav1.ConditionTrue) || before["observedGeneration"] != in.Object.GetGeneration() {
		return found, true
	}
	all := len(found)
	rest = slices.DeleteFunc(found, func(o obstacle) bool { return o.mild })
	return rest, len(rest) > 0 || all == 0
}

// ofHandlers returns the obstacles of handlers. Sees reports whether any handler counts, and acts whether the when of one of them
// is true. Then a filtered handler without children has nothing to do with the object: two handlers may have opposite whens.
func (in Input) ofHandlers() (out []obstacle, sees, acts bool) {
	for _, h := range in.Handlers {
		own := h.own()
		sees = sees || h.Counts
		acts = acts || h.Counts && (own == nil || own.idle == "")
		if one := h.obstacle(own); one != nil {
			out = append(out, *one)
		}
	}
	return out, sees, acts
}

// makes reports whether a handler has children.
func (in Input) makes(handler string) bool {
	return slices.ContainsFunc(in.Children, func(c Child) bool { return c.Handler == handler })
}

// ofChildren returns the obstacles of children, and how many children are wanted.
func (in Input) ofChildren() (out []obstacle, n int) {
	if in.Unread {
		return []obstacle{{
			grade: handlerOpen, status: metav1.ConditionFalse, reason: unready, message: "The children cannot be read yet.", mild: true,
		}}, 0
	}
	for _, c := range in.Children {
		if c.Unwanted {
			continue
		}
		if n++; c.Ready {
			continue
		}
		one := obstacle{grade: childUnready, status: metav1.ConditionFalse, reason: c.Reason, message: c.Stage}
		if c.Failed {
			one.grade = childFailed
		}
		out = append(out, one)
	}
	return out, n
}

// obstacle returns that of one handler; nil for none. The handler's own condition counts while the handler counts.
func (h Handler) obstacle(own *obstacle) *obstacle {
	failing := h.failing()
	switch {
	case failing != nil && own != nil && own.status == metav1.ConditionFalse && own.reason != waiting:
		own.grade = failing.grade
		return own
	case failing != nil:
		return failing
	case h.Counts && own != nil && own.status != metav1.ConditionTrue:
		return own
	case h.Open && h.Waiting:
		return &obstacle{grade: handlerWaits, status: metav1.ConditionFalse, reason: waiting, message: h.about() + h.Message}
	case h.Open:
		return &obstacle{grade: handlerOpen, status: metav1.ConditionFalse, reason: unready, message: h.about() + "it is not through yet", mild: true}
	}
	return nil
}

// about returns the beginning of messages about the handler.
func (h Handler) about() string { return "Handler " + h.ID + ": " }

// failing returns the obstacle of a handler that fails.
func (h Handler) failing() *obstacle {
	out := &obstacle{status: metav1.ConditionFalse, reason: h.Reason, message: h.about() + h.Message, steady: h.about()}
	switch h.Reason {
	case "":
		return nil
	case HandlerFailing:
		out.grade = handlerFails
	case FilterFailed:
		out.grade = filterFails
	}
	return out
}

// own returns the obstacle that the handler's own condition would be; nil if it has none.
func (h Handler) own() *obstacle {
	if h.Own == nil {
		return nil
	}
	out := &obstacle{grade: handlerFails, status: h.Own.Status, reason: h.Own.Reason, message: h.Own.Message}
	switch {
	case out.status == metav1.ConditionUnknown:
		out.grade, out.idle = handlerFiltered, h.ID
	case out.reason == waiting:
		out.grade = handlerWaits
	}
	return out
}
