// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Facts are the facts for a sentence about a handler.
type Facts struct {
	Handler string
	// Reason is the reason in the last reconcile. Detail has facts that the reason lacks.
	Reason Reason
	Detail string
	// Cause is the cause for which the handler has run, or is due.
	Cause string
	// Attempts counts the attempts of unfinished work. Message is the last error, or names the object that the handler
	// waits for.
	Attempts int
	Message  string
	// Waits: it waits for others. Failed: it failed for good.
	Waits, Failed bool
}

// After returns the facts about a handler if only its last attempt is known.
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

// Sentence says why a handler ran, or did not. It begins with the handler.
func Sentence(f Facts) string { return "handler " + f.Handler + " " + f.rest() }

// rest returns the sentence without the handler.
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

// Decided returns the condition that does not hold, with the values that decided; empty if all hold.
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

// waits returns the rest of a sentence about a wait.
func waits(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if what, is := strings.CutPrefix(message, "waiting for "); is {
		return "waits for " + what
	}
	return "waits: " + message
}

// IdleFor says why no handler of an object runs. Detail has facts, and may be empty.
func IdleFor(r Reason, detail string) *Idle {
	return &Idle{Reason: r.word, Says: filled(r.idle, detail)}
}
