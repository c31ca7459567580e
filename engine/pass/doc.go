// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package pass decides and remembers what a pass over one object does. Package engine runs the pass with it.
//
// [Decide] says from values alone what each handler has to do, and [Settle] what becomes of the object at the end (plan.go,
// choice.go, job.go, rules.go, others.go, settle.go). A [Clock] keeps the timers (clock.go, timer.go). [Memory] is what a process
// knows of an object between passes. A [Draft] is the object as handlers see it, with what earlier handlers of the pass want of
// it. [Conditions] says which handlers fail. [Machines] joins state machines with passes, [Departures] handles objects that are
// gone already, and a [Worker] takes keys and decides when each is due next. These decisions are pure: they talk to no server.
package pass
