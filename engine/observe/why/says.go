// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Facts are what a sentence about a handler is made from.
type Facts struct {
	Handler string
	// Reason is that of the last reconcile, and Detail has the facts where it does not say all.
	Reason Reason
	Detail string
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
	if last == nil || f.Reason != Ran {
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
		if f.Reason == DeadlineOver {
			return text
		}
		return text + "; it runs again when what it looks at changes"
	case f.Reason == Blocked, f.Reason == DeadlineOver:
		return filled(f.Reason.says, f.Detail)
	case f.Waits:
		return waits(f.Message)
	case f.Reason == ToRun && f.Attempts == 0, f.Reason == Ran && f.Attempts == 0:
		return f.Reason.says + " for " + f.Cause
	case f.Attempts > 0:
		return fmt.Sprintf("failed, and is tried again: %s", f.Message)
	}
	if f.Reason.None() {
		return "was not looked at in the last reconcile"
	}
	return filled(f.Reason.says, f.Detail)
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

// waits is the rest of a sentence about a wait.
func waits(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if what, is := strings.CutPrefix(message, "waiting for "); is {
		return "waits for " + what
	}
	return "waits: " + message
}

// IdleFor says why no handler of an object runs. Detail has the facts; it may be empty.
func IdleFor(r Reason, detail string) *Idle {
	return &Idle{Reason: r.word, Says: filled(r.idle, detail)}
}
