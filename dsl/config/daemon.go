// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// attendant is a daemon.
type attendant struct {
	ID           string         `yaml:"id" required:"true" doc:"The name of the daemon, unique within its resource, handlers included."`
	Call         *called        `yaml:"call" required:"true" doc:"The Go function, registered by name as a daemon. Its parameters stand under with."`
	With         map[string]any `yaml:"with" doc:"The parameters of the Go function. Expressions in them are not evaluated."`
	Reads        []dsl.Path     `yaml:"reads" unique:"true" doc:"The fields of the object that the function reads or sets, as in spec.size; it may always read metadata. It sees no other fields. If this is known of all handlers of the resource, the cache holds no other fields. Absent: all fields."`
	When         form.Predicate `yaml:"when" doc:"While it is false, the daemon does not run. Variables: self, cause, params, now, children, related, indexes. Absent: it always runs."`
	Labels       matches        `yaml:"labels" min:"1" doc:"Labels that the object must have: a value, or {exists: true} or {exists: false}."`
	Annotations  matches        `yaml:"annotations" min:"1" doc:"Annotations that the object must have, in the form of labels."`
	InitialDelay *form.Delay    `yaml:"initialDelay" default:"0s" doc:"The time from the end of the object's first reconcile, or from when its filters match again, to the start."`
	StopWithin   time.Duration  `yaml:"stopWithin" mistaken:"cancellation_timeout,cancellation_backoff" doc:"The time that the daemon has to end after it was asked to. Then nothing waits for it, nothing that it writes leaves the process, and the log and /readyz name it. Default: settings.gracePeriod."`
	Retries      *int           `yaml:"retries" min:"0" mistaken:"retry,maxRetries" doc:"How many times the daemon runs again after it failed. Absent: until it returns without an error."`
	Backoff      *backoff       `yaml:"backoff" doc:"The wait before the daemon runs again; it doubles from initial to max."`
	Finalizer    *bool          `yaml:"finalizer" default:"true" doc:"Whether a finalizer holds the object until the daemon has ended, or stopWithin is over."`
	Needs        []need         `yaml:"needs" doc:"Rights that the function needs and does not declare itself, for operator rbac."`
}

// called is the name of a function.
type called struct{ name string }

// ReadForm reads the name.
func (c *called) ReadForm(d *form.Decoder, p path, n *yaml.Node) bool { return d.Filled(p, n, &c.name) }

// DescribeForm describes the name.
func (c *called) DescribeForm(d *form.Describer) *form.Schema {
	return d.Filled(reflect.TypeFor[string]())
}

// daemon adds a daemon to the resource.
func (w *watched) daemon(at path, d *attendant) {
	h := &making{kind: dsl.DaemonHandler, handler: &handler{
		ID: d.ID, When: d.When, Labels: d.Labels, Annotations: d.Annotations, attempts: attempts{Retries: d.Retries, Backoff: d.Backoff},
		Finalizer: d.Finalizer, Needs: d.Needs, With: d.With,
	}}
	h.action = "call"
	if d.Call != nil {
		h.config = &d.Call.name
	}
	when, _, _ := w.filters(at, h)
	out, built := w.built(at, h)
	out.Func, out.Daemon = nil, &dsl.Daemon{Func: built.Daemon, StopWithin: d.StopWithin}
	out.Causes, out.Delay = []dsl.Cause{dsl.Running}, delay(d.InitialDelay)
	out.Labels, out.Annotations, out.When = h.Labels, h.Annotations, when
	out.NoFinalizer, out.NoOld = h.noFinalizer(), false
	out.Reads = w.reads(at, h, d.Reads)
	out.Known.ExplainWhen = h.explainWhen
	w.add(at, out)
}

// delay returns the time before a first run; nil if it is not set.
func delay(d *form.Delay) *dsl.Delay {
	if d == nil {
		return nil
	}
	return &dsl.Delay{Fixed: time.Duration(*d)}
}

// codeless reports whether an action has made no code of the kind, handler or daemon, that is needed.
func (h *making) codeless(built actions.Built) bool {
	if h.kind == dsl.DaemonHandler {
		return built.Daemon == nil
	}
	return built.Func == nil
}
