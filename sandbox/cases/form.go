// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"time"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// The form of a file with cases. Its tags are those of package dsl/form; the decoder and the JSON Schema read them.

type document struct {
	Config form.Texts `yaml:"config" doc:"The operator under test: a file or a directory beside this file, or several. Default: the directory of this file."`
	Needs  form.Texts `yaml:"needs" doc:"Go functions without which the cases show nothing. A program that lacks one skips the cases, for it would call a stub."`
	Now    moment     `yaml:"now" default:"2000-01-01T00:00:00Z" doc:"The time at which each case begins, as in 2026-03-29T01:30:00+01:00. It is virtual."`
	Given  objects    `yaml:"given" doc:"Objects that are there before each case begins."`
	Cases  []Case     `yaml:"cases" required:"true" doc:"The cases. Each has a cluster of its own."`
}

// Case is a case of a file.
type Case struct {
	Name      string           `yaml:"name" required:"true" doc:"What the case shows, in a sentence."`
	Now       moment           `yaml:"now" doc:"The time at which the case begins. Default: that of the file."`
	Given     objects          `yaml:"given" doc:"Objects that are there before the operator starts, as a list, or files with them. CRDs beside the operator are always there."`
	Functions map[string]stub  `yaml:"functions" doc:"What Go functions do instead of their code, by name. Functions that the program lacks succeed and do nothing without it."`
	Workloads map[string]stage `yaml:"workloads" doc:"What becomes of workloads, by name, as in deployments/web or pods/*. All others become ready at once."`
	Steps     []step           `yaml:"steps" doc:"What happens, in order. After each step the operator goes on until it has nothing more to do for the next seconds."`
	Expect    *expectation     `yaml:"expect" doc:"What holds after all steps."`

	at   form.Path
	file *File
}

type step struct {
	Apply    objects          `yaml:"apply" doc:"Apply objects, as kubectl apply --server-side."`
	Create   objects          `yaml:"create" doc:"Create objects."`
	Patch    map[string]any   `yaml:"patch" min:"1" doc:"Merge fields into objects, by name, as kubectl patch --type merge. A status goes to the status subresource."`
	Delete   form.Texts       `yaml:"delete" doc:"Delete objects, by name, as in foos/web."`
	Advance  time.Duration    `yaml:"advance" doc:"Let time pass."`
	Until    form.Predicate   `yaml:"until" doc:"Let time pass until a condition is true. Objects are named as in deployments[\"web\"]."`
	Ready    form.Texts       `yaml:"ready" doc:"Let time pass until objects are ready, as in deployments/web."`
	Within   time.Duration    `yaml:"within" default:"1h" doc:"How much time may pass for until and ready."`
	Fail     *failing         `yaml:"fail" doc:"Let the next requests of the operator fail."`
	Restart  bool             `yaml:"restart" doc:"Stop the operator, and start it again."`
	Crash    *crash           `yaml:"crash" doc:"Kill the operator at a write to come, and start it again."`
	Upgrade  form.Texts       `yaml:"upgrade" doc:"Stop the operator, and start another version of it: a file or a directory beside this file, or several."`
	Workload map[string]stage `yaml:"workloads" min:"1" doc:"Change what becomes of workloads."`
	Expect   *expectation     `yaml:"expect" doc:"What holds now."`
	Refused  string           `yaml:"refused" doc:"The API server refuses apply, create, patch or delete, with this in its words."`

	Warned string `yaml:"warned" doc:"The API server warns of apply, create, patch or delete, with this in its words."`

	at form.Path
}

type failing struct {
	Verb     verb   `yaml:"verb" required:"true" doc:"The verb, as in roles. What an operator applies is a patch."`
	Resource string `yaml:"resource" required:"true" doc:"The resource, as in deployments or foos/status."`
	Times    int    `yaml:"times" default:"1" min:"1" doc:"How many requests fail, from now on."`
	With     cause  `yaml:"with" default:"InternalError" doc:"The error. Lost: the server does what is asked, and its response is lost."`
}

type crash struct {
	After int `yaml:"after" required:"true" min:"1" doc:"The write request, counted from now, at which the operator is killed. The server does what it asks; the operator does not hear of it."`
}

type stage struct {
	Hold  bool          `yaml:"hold" default:"false" doc:"Whether the workload stays as it is, and does not become ready."`
	Fail  string        `yaml:"fail" doc:"The reason for which the workload fails, such as CrashLoopBackOff, ImagePullBackOff, Unready or Unschedulable."`
	Delay time.Duration `yaml:"delay" doc:"The time after which the workload becomes ready. Absent: at once."`
}

type stub struct {
	Fails     string         `yaml:"fails" doc:"The error that the function returns. Absent: it succeeds."`
	Permanent bool           `yaml:"permanent" default:"false" doc:"Whether the error is permanent, so that the handler does not run again."`
	Times     int            `yaml:"times" min:"1" doc:"How many calls fail; later ones succeed. Absent: all calls fail."`
	Sets      map[string]any `yaml:"sets" doc:"Fields that the function sets on its object when it succeeds."`
}

type expectation struct {
	Objects    map[string]any                  `yaml:"objects" min:"1" doc:"Objects by name, as in deployments/web or deployments/other-namespace/web: fields that they have (lists as a whole), absent, or an expression with the object as self."`
	Conditions map[string]map[string]condition `yaml:"conditions" min:"1" doc:"Conditions of objects by name, by their types."`
	State      map[string]any                  `yaml:"state" min:"1" doc:"States of machines of objects, by name: the state, or a map of machines and their states."`
	CEL        form.Texts                      `yaml:"cel" doc:"Expressions that are true. Objects are named as in deployments[\"web\"]."`
	Events     []eventForm                     `yaml:"events" doc:"Events that were sent."`
	Log        []logForm                       `yaml:"log" doc:"Lines of the operator's log."`
	Requests   []requestForm                   `yaml:"requests" doc:"Write requests that the operator sent, without those for Events and Leases."`
	Calls      []callForm                      `yaml:"calls" doc:"Calls of Go functions."`
	Failing    map[string]string               `yaml:"failing" min:"1" doc:"Handlers and schedules that fail now, by id, and indexes that leave objects out, by name, each with a part of its error. What fails at the end of a case is a failure of the case, unless it is here."`

	at form.Path
}

type condition struct {
	Status  string
	Reason  string
	Message string
	absent  bool
	// only: the status stands alone.
	only bool
}

// The following expectations count what has happened since the last expectation, or since the case began.

type eventForm struct {
	Object  string `yaml:"object" doc:"The object that the Event is about, as in foos/web."`
	Reason  string `yaml:"reason" doc:"The reason of the Event."`
	Message string `yaml:"message" doc:"A part of its message."`
	Type    weight `yaml:"type" doc:"The type of the Event."`
	counted
}

type logForm struct {
	Message string `yaml:"message" doc:"A part of its message, or of its error."`
	Handler string `yaml:"handler" doc:"The id of the handler that wrote the line."`
	Object  string `yaml:"object" doc:"The object that the line is about, as in foos/web."`
	Level   level  `yaml:"level" doc:"The level of the line."`
	counted
}

type requestForm struct {
	Verb     write  `yaml:"verb" doc:"The verb, as in roles. What an operator applies is a patch."`
	Resource string `yaml:"resource" doc:"The resource, as in deployments or foos/status."`
	Name     string `yaml:"name" doc:"The name of the object."`
	counted
}

type callForm struct {
	Function string         `yaml:"function" required:"true" doc:"The function, as in foo.Announce."`
	Object   string         `yaml:"object" doc:"The object that it was called for."`
	With     map[string]any `yaml:"with" doc:"Parameters that it had; others may be there."`
	counted
}

// counted says how often something has happened. Without a number it is once or more often.
type counted struct {
	Times  *int `yaml:"times" min:"0" doc:"How often exactly; 0 for not at all. Without times and atMost: once or more often."`
	AtMost *int `yaml:"atMost" min:"0" doc:"How often at most."`
}

type (
	verb   string
	write  string
	cause  string
	level  string
	weight string
)

func (verb) Choices() (string, []string) {
	return "verb", []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
}

func (write) Choices() (string, []string) {
	return "write verb", []string{"create", "update", "patch", "delete", "deletecollection"}
}

func (weight) Choices() (string, []string) { return "type", []string{"Normal", "Warning"} }

func (cause) Choices() (string, []string) { return "error", causes() }

func (level) Choices() (string, []string) {
	return "level", []string{"debug", "info", "warning", "error"}
}
