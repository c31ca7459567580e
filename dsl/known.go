// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

// Known is what was found out about a handler's code. Package config finds it out from the expressions and actions of
// a configuration, and [Resource.Add] from the states of a machine. For other code in Go it is empty.
type Known struct {
	// Action describes the code for people, as in "call: foo.Announce".
	Action string
	// At has the text and the place of the expression that Timing.At evaluates. It is zero for a function in Go.
	At Clause
	// Brings are additional causes that the code needs.
	Brings []Cause
	// Reads are the fields and objects that the code and the filters read. If the code of a level-triggered handler
	// depends on these alone, only a change of them triggers it. Another level-triggered handler is also triggered by
	// changes of the fields in status and metadata that it reads. Reads has no effect on other handlers, and
	// Handler.Fields takes precedence.
	Reads KnownReads
	// Sets are the fields of the object that the code sets, and Conditions the types of conditions.
	Sets       []Path
	Conditions []string
	// Leaves, when set, reports whether the code leaves one of Conditions as it is for an object.
	Leaves func(s *Subject, condition string) bool
	// Steady: the conditions depend only on the handler's view. They stay true for each generation in which the
	// view is the same.
	Steady bool
	// Gated are those of Handler.Makers whose step has its own filter. While that is false, the step's children stay
	// as they are.
	Gated []string
	// Patches are the names under which the code patches objects that are no children; see [TargetSpec]. Nil means that
	// they are not known.
	Patches []string
	// Withdraws: the handler's children and targets are taken away when Labels or Annotations do not match the object any more.
	Withdraws bool
	// Filtered, when set, runs instead of the code while When of a level-triggered handler is false. It reports this
	// in conditions of the object, and makes no other changes.
	Filtered func(s *Subject, says *Patch)
	// ExplainWhen explains Handler.When, and ExplainCode the conditions within the code, such as those of its steps.
	// See [Handler.Explain].
	ExplainWhen func(s *Subject) Clause
	ExplainCode func(s *Subject) []Clause
}
