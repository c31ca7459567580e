// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why

import "strings"

// Reason is why a handler ran in a reconcile, or did not, or why no reconcile over an object began. The zero value is no
// reason. Only the rows below make reasons, so no text of a reason can be missing.
type Reason struct{ *row }

// row is a reason with all its texts.
type row struct {
	// word is for programs, the log and the history.
	word string
	// says is the rest of a sentence about a handler. idle is a sentence about an object. One of them may be empty. A
	// verb stands for the detail.
	says, idle string
	// brief is for lists of objects that are not ready, empty if the handler's record has the text.
	brief string
	// handler is the state of a handler with this reason.
	handler State
	// cure says what a person can do. page is a page with more, relative to docs, or empty.
	cure, page string
}

// reasons are all rows, in the order of the docs.
var reasons []Reason

// reason makes a row.
func reason(r row) Reason {
	reasons = append(reasons, Reason{&r})
	return Reason{&r}
}

// The reasons why a handler runs, or does not. A new one is a row here, and the line that produces it. If a due handler
// does not run for the reason, two more places need a case: [Facts.State] with Facts.rest, or an earlier failure hides
// the reason, and run.unfinished of package reconcile, or the object counts as ready.
var (
	Ran = reason(row{word: "Ran", says: "ran", cure: "nothing"})
	// ToRun, Stored, NoTime and NotYet are only in answers.
	ToRun  = reason(row{word: "ToRun", says: "is to run", handler: Due, cure: "wait; while the object is held, see why it is"})
	Stored = reason(row{word: "Stored", says: "had finished when the operator last stored its progress", cure: "nothing: no process answered, so this is from the object"})
	NoTime = reason(row{word: "NoTime", says: "has nothing to do: the object gives no time for it", cure: "give the object the time that `at` reads"})
	NotYet = reason(row{word: "NotYet", says: "waits for its time", cure: "wait"})
	// NothingDue: the handler's view is as the handler left it, and there is no other trigger.
	NothingDue = reason(row{word: "NothingDue", says: "has nothing to do: nothing that it looks at has changed", cure: "change what it looks at"})
	// NoDeletion is NothingDue for an object that is being deleted.
	NoDeletion = reason(row{word: "NoDeletion", says: "has nothing to do for the deletion", cure: "nothing"})
	// NotMatched: a label or an annotation does not match.
	NotMatched = reason(row{word: "NotMatched", says: "does not see the object: %s", handler: Filtered, cure: "set the label or annotation, or change the filter"})
	WhenFalse  = reason(row{word: "WhenFalse", says: "does not run: its when is false: %s", handler: Filtered, cure: "change the values that it names, or the `when`", page: "#applied-is-unknown-filtered"})
	WhenFails  = reason(row{word: "WhenFails", says: "does not run: its when failed: %s", brief: "filter failed: %s", handler: Failing, cure: "fix the `when`, or give the object what it reads"})
	TimeFails  = reason(row{word: "TimeFails", says: "does not run: its time is not known: %s", handler: Failing, cure: "fix `at`, or give the object what it reads"})
	// BackOff: the handler failed, or waits, and is tried again later. The detail is the time.
	BackOff = reason(row{word: "BackOff", says: "is tried again at %s", handler: Due, cure: "fix what it failed for, or [ask for a retry](recipes.md#try-again-now)", page: "#a-handler-fails"})
	// Blocked: the handler comes after another one, which is not through. The detail names that one.
	Blocked = reason(row{word: "Blocked", says: "waits for handler %s, which has not finished", brief: "waits for handler %s", handler: Due, cure: "look at the handler that it names"})
	// DeadlineOver: the deadline of all attempts is over.
	DeadlineOver = reason(row{word: "DeadlineOver", says: "failed for good: its deadline is over", handler: Failed, cure: "fix what it failed for, and change the object or ask for a retry", page: "#a-handler-fails"})
	NotChosen    = reason(row{word: "NotChosen", says: "was not chosen by the resource's lifecycle: other handlers go first", handler: Due, cure: "wait for the others"})
	// OutcomeMissing: the handler reads the outcome of a later one, which this process does not know yet.
	OutcomeMissing = reason(row{word: "OutcomeMissing", says: "runs when it is known what comes of handler %s", handler: Due, cure: "wait for the handler that it names"})
	// DaemonsFirst: the object is being deleted, and its daemons have not ended.
	DaemonsFirst = reason(row{word: "DaemonsFirst", says: "runs when the object's daemons have ended", handler: Due, cure: "wait until they have ended", page: "#a-deletion-hangs"})
)

// The reasons why no reconcile over an object begins, so that no handler of it runs. A new one is a row here, and a
// gate.
var (
	// ScopeLeft: the object's namespace has left the operator's scope, and the cache will drop the object.
	ScopeLeft = reason(row{word: "ScopeLeft", idle: "no handler runs: the object's namespace has left the operator's scope", cure: "nothing: the object is about to go from the cache"})
	// Paused: the object, its namespace or the operator is paused. It is also a handler's reason if the pause begins
	// during a reconcile.
	Paused = reason(row{word: "Paused", says: "does not run: %s", idle: "no handler runs: paused: %s", brief: "paused: %s", handler: Due, cure: "resume it", page: "recipes.md#leave-an-object-alone"})
	// CacheBehind: the cache lacks one of this operator's own writes. Its event wakes the key.
	CacheBehind = reason(row{word: "CacheBehind", idle: "no handler runs until the cache shows the operator's own writes", brief: "waits for the cache to show the operator's own writes", cure: "look at the watch of the resource", page: "#parked-keys"})
	// BreakerOpen: the object's reconciles wrote again and again. The next one waits.
	BreakerOpen = reason(row{word: "BreakerOpen", idle: "no handler runs: the object's reconciles wrote again and again without coming to rest", brief: "its reconciles write again and again; it rests", cure: "find who undoes the writes", page: "#an-object-loops"})
	// DeletionsHeld: a limit holds the deletion of the object.
	DeletionsHeld = reason(row{word: "DeletionsHeld", idle: "no handler runs: the deletion waits: %s", brief: "its deletion waits: %s", cure: "find out whether the deletions are meant; `operator release` lets them go", page: "limits.md#deletions-are-held"})
	MemoryShort   = reason(row{word: "MemoryShort", idle: "no handler runs until other reconciles give back the memory that this one takes", brief: "waits for memory that other reconciles hold", cure: "wait, or give the process more memory", page: "#memory"})
)

// Known returns the reason with a word; none for a word that this version does not know.
func Known(word string) Reason {
	for _, r := range reasons {
		if r.word == word {
			return r
		}
	}
	return Reason{}
}

// String returns the word; empty for none.
func (r Reason) String() string {
	if r.row == nil {
		return ""
	}
	return r.word
}

// None reports whether there is no reason.
func (r Reason) None() bool { return r.row == nil }

// Brief returns the reason for lists of objects that are not ready.
func (r Reason) Brief(detail string) string { return filled(r.brief, detail) }

// state returns the state of a handler with this reason.
func (r Reason) state() State {
	if r.row == nil {
		return ""
	}
	return r.handler
}

// NeedsPerson reports whether the handler fails for a cause that does not go away by itself.
func (r Reason) NeedsPerson() bool { return r.state() == Failed || r.state() == Failing }

// filled puts a detail into a sentence. Without a detail the sentence ends before it.
func filled(text, detail string) string {
	head, tail, has := strings.Cut(text, "%s")
	switch {
	case has && detail == "":
		return strings.TrimSuffix(head, ": ") + tail
	case !has && detail != "":
		return text
	}
	return head + detail + tail
}
