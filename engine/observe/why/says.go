// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Facts are what a sentence about a handler is made from.
type Facts struct {
	Handler string
	// Reason and Detail are those of the last reconcile, as package pass has them.
	Reason, Detail string
	// Cause is what the handler is to run for, or has run for.
	Cause string
	// Attempts counts the attempts so far of what is not finished, Message is the last error, or what it waits for.
	Attempts int
	Message  string
	// Waits: it waits for others. Failed: it failed for good.
	Waits, Failed bool
}

// After returns the facts of a handler of which no more is known than its last attempt.
func (f Facts) After(last *Run) Facts {
	if last == nil || f.Reason != "Ran" {
		return f
	}
	switch last.Outcome {
	case "success", "ignored":
		f.Message = ""
	case "failed":
		f.Failed = true
	case "waiting":
		f.Waits = true
	default:
		f.Attempts = last.Number
	}
	return f
}

// Sentence says why a handler ran, or why not. It begins with the handler.
func Sentence(f Facts) string { return "handler " + f.Handler + " " + f.rest() }

// rest is the sentence after the handler.
func (f Facts) rest() string {
	switch {
	case f.Failed:
		text := "failed for good: " + f.Message
		if f.Reason == "DeadlineOver" {
			return text
		}
		return text + "; it runs again when what it looks at changes"
	case f.Reason == "Blocked":
		return "waits for handler " + f.Detail + ", which has not finished"
	case f.Waits:
		return waits(f.Message)
	case f.Reason == "ToRun" && f.Attempts == 0:
		return "is to run for " + f.Cause
	case f.Attempts > 0:
		return fmt.Sprintf("failed, and is tried again: %s", f.Message)
	}
	if text := plainly[f.Reason]; text != "" {
		return strings.TrimSuffix(fmt.Sprintf(text, f.Detail), ": ")
	}
	return cmp.Or(f.ran(), "was not looked at in the last reconcile")
}

// Decided says which condition does not hold, and by which values; empty where all do.
func Decided(all []dsl.Clause) string {
	i := slices.IndexFunc(all, func(c dsl.Clause) bool { return c.What == "when" && !c.Holds })
	if i < 0 {
		return ""
	}
	c := all[i]
	out := c.Text
	if c.Place != "" {
		out += " (" + c.Place + ")"
	}
	var values []string
	for _, v := range c.Values {
		values = append(values, v.Text+" is "+v.Value)
	}
	return strings.TrimSuffix(out+", where "+strings.Join(values, ", "), ", where ")
}

// plainly has the sentences for reasons that need no more than their detail.
var plainly = map[string]string{
	"NotYet":       "waits for its time%.0s",
	"NothingDue":   "has nothing to do: nothing that it looks at has changed%.0s",
	"NoDeletion":   "has nothing to do for the deletion%.0s",
	"NotMatched":   "does not see the object: %s",
	"WhenFalse":    "does not run: its when is false: %s",
	"WhenFails":    "does not run: its when failed: %s",
	"TimeFails":    "does not run: its time is not known: %s",
	"NoTime":       "has nothing to do: the object gives no time for it%.0s",
	"BackOff":      "is tried again at %s",
	"DeadlineOver": "failed for good: its deadline is over%.0s",
	"NotChosen":    "was not chosen by the resource's lifecycle: other handlers go first%.0s",
	"Stored":       "was through when the operator stored its book%.0s",
	"Paused":       "does not run: %s",
	"Unheard":      "runs when it is known what comes of handler %s",
	"DaemonsFirst": "runs when the object's daemons have ended%.0s",
}

// ran is the sentence for a handler that has run and is through; empty for another one.
func (f Facts) ran() string {
	if f.Reason != "Ran" {
		return ""
	}
	return "ran for " + f.Cause
}

// waits is the rest of a sentence about a wait.
func waits(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if what, is := strings.CutPrefix(message, "waiting for "); is {
		return "waits for " + what
	}
	return "waits: " + message
}

// idly has the sentences for reasons why no handler of an object runs.
var idly = map[string]string{
	"CacheBehind": "no handler runs until the cache shows the operator's own writes",
	"BreakerOpen": "no handler runs: the object's reconciles wrote again and again without coming to rest",
	"MemoryShort": "no handler runs until other reconciles give back the memory that this one takes",
	"Paused":      "no handler runs: paused",
	"ScopeLeft":   "no handler runs: the object's namespace has left the operator's scope",
}

// IdleFor says why no handler of an object runs. Detail has the facts; it may be empty.
func IdleFor(reason, detail string) *Idle {
	says := cmp.Or(idly[reason], "no handler runs: "+reason)
	if detail != "" {
		says += ": " + detail
	}
	return &Idle{Reason: reason, Says: says}
}
