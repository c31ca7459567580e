// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

type handler struct {
	ID          string         `yaml:"id" required:"true" mistaken:"name" doc:"The name of the handler, unique within its resource or list. Progress is kept under it, so a renamed handler is a new one, unless was has the earlier name."`
	Was         form.Texts     `yaml:"was" doc:"Ids that the handler had in earlier versions, one or a list. Progress and children under such an id become its own."`
	Causes      []dsl.Cause    `yaml:"causes" unique:"true" mistaken:"on,events,triggers" doc:"What makes the handler run. reconcile stands for create, update, resume, resync, child, related and index. Default: reconcile, and for a handler with a timer the timer alone."`
	When        form.Predicate `yaml:"when" mistaken:"if,condition,filter" doc:"While it is false, the handler does nothing: its children stay as they are. Variables: self, old, diff, cause, event, params, now, children, related, indexes, handlers; a daemon has no old, diff, event and handlers. Absent: the handler always acts."`
	Let         lets           `yaml:"let" min:"1" mistaken:"vars,variables,locals,define" doc:"Named expressions, which all expressions of the handler know as variables, as in let: {wanted: self.spec.replicas > 0}. They may use each other. Absent: none."`
	IncludeWhen form.Predicate `yaml:"includeWhen" doc:"For handlers that apply: while it is false, all their children are taken away. Variables as in when, without old, diff and event. Absent: the children are wanted."`
	Field       dsl.Path       `yaml:"field" doc:"The one field that the handler looks at, as in spec.replicas: it runs when this field changes. Absent: what its expressions read, or everything but the status."`
	Labels      matches        `yaml:"labels" min:"1" doc:"Labels that the object must have: a value, or {exists: true} or {exists: false}."`
	Annotations matches        `yaml:"annotations" min:"1" doc:"Annotations that the object must have, in the form of labels."`
	attempts
	After     []string       `yaml:"after" unique:"true" doc:"The ids of handlers before this one that must have succeeded first."`
	Finalizer *bool          `yaml:"finalizer" default:"true" doc:"For cause delete: whether a finalizer holds the object until the handler has succeeded."`
	OnFailure onFailure      `yaml:"onFailure" default:"hold" doc:"For cause delete: what becomes of the object when the handler has failed for good. hold: the finalizer stays. release: it is removed."`
	Deleted   bool           `yaml:"deleted" default:"false" doc:"For cause resume: whether the handler also runs for an object that is being deleted."`
	Old       *bool          `yaml:"old" default:"true" doc:"Whether the handler needs the variables old and diff, or in Go the old object and the difference. With false, less is kept on the object."`
	Reads     []dsl.Path     `yaml:"reads" unique:"true" doc:"For call: the fields of the object that the Go function reads or sets, as in spec.size; it may always read metadata. It sees no other fields, and changes of others do not run it. If this is known of all handlers of the resource, the cache holds no other fields. Absent: all fields."`
	With      map[string]any `yaml:"with" doc:"The parameters of the Go function that the handler calls. Expressions read them as params."`
	ForEach   form.Items     `yaml:"forEach" doc:"A list or a map, mostly an expression. The action, or the steps, run once for each entry, with the variables item (also value), index and key. Each entry has its own progress, attempts and children; there are at most 100. Absent: they run once."`
	Key       form.ItemKey   `yaml:"key" doc:"For forEach: an expression that identifies an entry by a text or a number, as in ${item.name}. Default: the entry itself if it is a text or a number; in a map, its key."`
	Steps     []step         `yaml:"steps" doc:"Several actions in order, instead of one. Progress is kept for each: after a failure, the steps before it do not run again."`
	Needs     []need         `yaml:"needs" doc:"Rights that operator rbac cannot see in the definition: those of Go functions that do not declare theirs, and those for children whose kind an expression gives."`
	timing
	// Again is set after a success.
	Again form.Expression `yaml:"runAgainAfter" mistaken:"requeueAfter" doc:"Run again, with cause again, so long after the handler has succeeded, unless something else runs it before: a duration such as 30s, or a CEL expression that gives a duration, text such as 30s, or null for no other run. Variables: self, cause, params, now, children, related, indexes."`

	doing
}

// making is a handler that is being compiled: what its author wrote, and what the loader has found out so far.
type making struct {
	*handler
	// kind is zero for a handler of objects. starts: it is a startup.
	kind   dsl.HandlerKind
	starts bool
	// state is the state of a machine that has it, as machine.Running.
	state string
	// level: it is level-triggered.
	level bool
	// restores: it makes a missing child again; see [dsl.Handler.Restores].
	restores bool
	// partly: it is a step that is not always executed.
	partly bool
	// needsUnknown: the needs of a step are not known.
	needsUnknown bool
	// sure are the paths in the object that exist when it runs. unset: missing values of the status are handled.
	sure  []string
	unset bool
	// include says whether its children are desired; nil means that they are.
	include *actions.Predicate
	// entries, vars and each are for forEach, and nil without it: the entries, the variables of an entry, and what
	// gives the list of them.
	entries *actions.Entries
	vars    []string
	each    *expr.Template
	// names are the variables of its expressions besides those of all handlers. oneStep: it is one step of a handler.
	names   []string
	oneStep bool
	// lacks are the variables that a rule about requests does not have, with the reason.
	lacks map[string]string
	// explainWhen explains its when, and asks are the conditions within its code that it has itself.
	explainWhen explainer
	asks        []actions.Ask
}

// active reports whether the handler is an activity of the operator.
func (h *making) active() bool { return h.kind&(dsl.ActivityHandler|dsl.ProbeHandler) != 0 }

// whole reports whether the handler has no single object.
func (h *making) whole() bool { return h.active() || h.kind == dsl.ScheduleHandler }

// doing is the action of a handler or of a step.
type doing struct {
	action string // its key; "" for none
	config any    // the value of the key; nil if it has a fault
}

// attempts are the options for failures and times. With forEach, they apply to each entry.
type attempts struct {
	Retries  *int            `yaml:"retries" min:"0" mistaken:"retry,maxRetries" doc:"How many times the handler runs again after it failed. Absent: until it succeeds."`
	Errors   dsl.ErrorPolicy `yaml:"errors" default:"retry" doc:"What an error means. retry: the handler runs again, as often as retries says. fail: it has failed for good. ignore: the error is logged, and counts as success."`
	Backoff  *backoff        `yaml:"backoff" doc:"The wait between two attempts; it doubles from initial to max."`
	Timeout  time.Duration   `yaml:"timeout" doc:"The time for one attempt. Then its context ends, and it has failed. Absent: no limit."`
	Deadline time.Duration   `yaml:"deadline" doc:"The time for all attempts together, from the start of the first one, with the waits between them. Then the handler has failed for good. Absent: no limit."`
}

// options returns the options of the engine's handler.
func (a *attempts) options() []dsl.Option {
	out := []dsl.Option{dsl.Timeout(a.Timeout), dsl.Deadline(a.Deadline), dsl.Errors(a.Errors)}
	if a.Retries != nil {
		out = append(out, dsl.Retries(*a.Retries))
	}
	if a.Backoff != nil {
		out = append(out, dsl.WithBackoff(a.Backoff.Initial, a.Backoff.Max))
	}
	return out
}

type timing struct {
	At form.Expression `yaml:"at" doc:"Run once, at the time that this CEL expression gives: a timestamp, text in RFC 3339, or null for no time. After that, only a later time runs it again. Variables: self, params."`

	Every    time.Duration `yaml:"every" doc:"Run again and again, with this period."`
	Pause    time.Duration `yaml:"pause" doc:"Run again and again, with this time from the end of one run to the start of the next."`
	Cron     string        `yaml:"cron" doc:"Run at these times: minute, hour, day of the month, month and day of the week, as in 0 3 * * *, or @hourly, @daily, @weekly, @monthly, @yearly."`
	TimeZone string        `yaml:"timeZone" default:"UTC" doc:"The time zone of cron, as in Europe/Berlin."`
	Idle     time.Duration `yaml:"idle" doc:"Run only if the object has not changed for this time: once after each change; with every or cron, at their times; with pause, when both have passed."`
	Jitter   *form.Delay   `yaml:"jitter" doc:"The most by which a run is moved at random: earlier for every, later for pause and cron. 0s: no run is moved. Default: a tenth of the period, for pause and cron at most a minute."`

	InitialDelay *form.Delay `yaml:"initialDelay" doc:"The time from when a process first sees the object to the first run. Absent: a random part of the period for objects that are there when the process starts, and a whole period for new ones."`
}

// given reports whether a timer is configured.
func (t *timing) given() bool {
	return t.At != "" || t.Every != 0 || t.Pause != 0 || t.Cron != "" || t.Idle != 0
}

// moved returns the jitter as [dsl.Timing] has it: below zero for none, zero for the default.
func (t *timing) moved() time.Duration {
	switch {
	case t.Jitter == nil:
		return 0
	case *t.Jitter == 0:
		return -1
	}
	return time.Duration(*t.Jitter)
}

type need struct {
	Resource  string   `yaml:"resource" required:"true" doc:"The resource in kubectl's spelling, with a subresource behind a slash: deployments.apps/scale. self is the handler's own resource, as in self/status."`
	Verbs     []string `yaml:"verbs" unique:"true" required:"true" doc:"Verbs as in roles: get, list, watch, create, update, patch, delete."`
	Names     []string `yaml:"names" doc:"The names of the objects. Absent: all objects."`
	Namespace string   `yaml:"namespace" doc:"The namespace of the objects. Absent: the namespaces that the operator works in."`
}

type backoff struct {
	Initial time.Duration `yaml:"initial" default:"1s" doc:"The first wait."`
	Max     time.Duration `yaml:"max" default:"5m" doc:"The longest wait."`
}

// onFailure says what happens to an object whose handler has failed for good.
type onFailure string

const (
	hold    onFailure = "hold"
	release onFailure = "release"
)

// Choices returns both values.
func (onFailure) Choices() (string, []string) {
	return "policy", []string{string(hold), string(release)}
}

// handler adds a handler to the resource.
func (w *watched) handler(at path, form *handler) {
	h := &making{handler: form}
	w = w.forHandler(at, h)
	causes := h.Causes
	if !w.Has(at.Key("causes")) && !h.given() {
		causes = []dsl.Cause{dsl.Reconcile}
	}
	wakes := dsl.Handler{Causes: causes}
	if len(h.Field) > 0 {
		wakes.Fields = []dsl.Path{h.Field}
	}
	h.level, h.restores = wakes.Level(), wakes.Restores()
	w.deletion(at, h, causes)
	when, asks, back := w.filters(at, h)
	out, built := w.built(at, h)
	asks = asks.And(w.again(at.Key("runAgainAfter"), h, &out))
	if back && !slices.Contains(causes, dsl.Delete) {
		// A filter that uses the old state is the first part of the code. The handler then handles each change,
		// whatever the filter says, and the filter compares with the object before that change.
		out.Func, when = w.composer(at.Key("when")).Step(actions.Step{Func: out.Func, When: when}), nil
	}
	out.Causes = append(slices.Clone(causes), out.Causes...)
	out.Labels, out.Annotations, out.When = h.Labels, h.Annotations, when
	out.Fields = wakes.Fields
	out.After, out.Was = h.After, h.Was
	out.Reads = w.reads(at, h, form.Reads)
	out.NoFinalizer, out.Release = h.noFinalizer(), h.OnFailure == release
	out.Deleted = h.Deleted
	out.NoOld = built.NoOld && !back || h.Old != nil && !*h.Old
	if out.Makers = built.Makers; out.Makers == nil && h.entries == nil {
		out.Makers = built.Calls
	}
	known := &out.Known
	known.Brings, known.Sets, known.Conditions, known.Reads = built.Brings, built.Sets, built.Conditions, built.Reads.And(asks)
	known.Leaves = built.Leaves
	w.moment(at.Key("at"), h, &out)
	known.Patches, known.Gated, known.Withdraws = built.Patches, built.Gated, h.level && len(built.Makers)+len(built.Patches) > 0
	known.ExplainWhen, known.ExplainCode = h.explainWhen, explainCode(h.entries, slices.Concat(h.asks, built.Asks))
	if place := w.line(at.Key("when")); when != nil && built.Filtered != nil {
		known.Filtered = func(s *dsl.Subject, says *dsl.Patch) { built.Filtered(s, place, says) }
	}
	w.meddles(at.Key(cmp.Or(h.action, steps)), built.Sets, built.Conditions)
	added := w.add(at, out)
	added.Known.Steady = steady(added, built)
}

// steady reports whether the conditions that a handler sets depend only on its view.
func steady(h *dsl.Handler, built actions.Built) bool {
	reads := slices.DeleteFunc(slices.Clone(built.Reads.Paths), func(read dsl.Path) bool {
		return slices.ContainsFunc(h.Known.Sets, func(set dsl.Path) bool { return slices.Equal(set, read) })
	})
	return len(h.Known.Conditions) > 0 && h.Woken() && !h.Known.Reads.Passing && h.View().Holds(reads)
}

// deletion checks fields that are for delete handlers alone, also if they have their default values: an author who
// writes a default relies on it.
func (w *watched) deletion(at path, h *making, causes []dsl.Cause) {
	deletes := slices.Contains(causes, dsl.Delete)
	for _, name := range []string{"finalizer", "onFailure"} {
		if w.Has(at.Key(name)) && !deletes && !w.Faulty(at.Key("causes")) {
			w.FaultKey(at.Key(name), "is only for handlers with cause delete")
		}
	}
	if policy := at.Key("onFailure"); w.Has(policy) && deletes && h.noFinalizer() {
		w.FaultKey(policy, "says nothing with finalizer: false, which holds no object")
	}
}

// scheduled adds a handler that runs for the resource as a whole.
func (w *watched) scheduled(at path, form *handler) {
	h := &making{handler: form, kind: dsl.ScheduleHandler}
	w = w.forHandler(at, h)
	out, _ := w.built(at, h)
	out.ResourceWide, out.Causes = true, []dsl.Cause{dsl.Timer}
	w.add(at, out)
}

// built returns the handler with its common fields, and what the action made from its configuration. For an action
// with a fault, both only have the name.
func (w *watched) built(at path, h *making) (dsl.Handler, actions.Built) {
	if !h.whole() {
		h.entries = w.each(at, h)
		w.include(at, h)
	}
	built := w.action(at, h)
	if built != nil && h.entries != nil {
		w.forEntries(at, h, built)
	}
	if built == nil {
		w.loader.refused[w.out] = true
		built = &actions.Built{Func: func(context.Context, *dsl.Request) error { return nil }, Daemon: func(context.Context, *dsl.DaemonRequest) error { return nil }}
	}
	out := dsl.Handler{ID: h.ID, Func: built.Func, Retries: dsl.Unlimited, NoOld: built.NoOld && !h.whole()}
	out.Known.Action = described(h)
	own := h.attempts
	if h.entries != nil {
		own = attempts{Backoff: h.Backoff}
	}
	for _, set := range own.options() {
		set(&out)
	}
	out.Delay = delay(h.InitialDelay)
	if t := h.timing; t != (timing{InitialDelay: t.InitialDelay}) {
		out.Timing = &dsl.Timing{Every: t.Every, Pause: t.Pause, Cron: t.Cron, TimeZone: t.TimeZone, Idle: t.Idle, Jitter: t.moved()}
	}
	if h.given() {
		out.Causes = []dsl.Cause{dsl.Timer}
	}
	out.Needs, out.Declared = w.needs(at.Key("needs"), h, built)
	return out, *built
}

// add adds a handler and notes its place.
func (w *watched) add(at path, h dsl.Handler) *dsl.Handler {
	added := w.out.Add(h)
	w.loader.places[added] = place{w.part, at}
	return added
}

// noFinalizer reports whether the handler has no finalizer.
func (h *handler) noFinalizer() bool { return h.Finalizer != nil && !*h.Finalizer }

// filters compiles the handler's filters. It returns what they read, and whether they use the old state.
func (w *watched) filters(at path, h *making) (when dsl.Predicate, reads dsl.KnownReads, back bool) {
	w.known(at.Key("field"), h.Field)
	reads.Only, reads.Complete = true, true
	reads.Paths = w.matchKeys(at, h)
	program := w.when(at.Key("when"), h)
	if program == nil {
		return nil, reads, false
	}
	h.explainWhen = w.explains(at.Key("when"), "when", program, h.With, false)
	program = program.Observed("", w.loader.registry.Branches(w.out.Name, h.ID))
	return program.Predicate("when", h.With), reads.And(program.Reads()), program.Uses(expr.Old) || program.Uses(expr.Diff)
}

// needs returns the rights that a handler needs: those that it declares, and those that its actions are known to
// need. Declared means that there are no others.
func (w *watched) needs(at path, h *making, built *actions.Built) (all []dsl.Need, declared bool) {
	said := make([]dsl.Need, len(h.Needs))
	for i, n := range h.Needs {
		var err error
		if said[i], err = dsl.ParseNeed("get", n.Resource); err != nil && n.Resource != "" {
			w.Fault(at.Index(i).Key("resource"), "%v", err)
		} else if said[i].Resource != (dsl.ResourceName{}) && slices.ContainsFunc(n.Verbs, ofRequests) {
			w.mayExist(at.Index(i).Key("resource"), said[i].Resource)
		}
		said[i].Verbs, said[i].Names, said[i].Namespace = n.Verbs, n.Names, n.Namespace
	}
	known := built.Needs != nil && !h.needsUnknown && !anyKind(built)
	return slices.Concat(said, built.Needs), known || len(said) > 0
}

// ofRequests reports whether a verb is one of requests for objects. Other verbs, as impersonate, also apply to
// resources without objects.
func ofRequests(verb string) bool {
	return slices.Contains([]string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}, verb)
}

// anyKind reports whether a handler makes children whose kind is computed when it runs.
func anyKind(built *actions.Built) bool {
	return slices.ContainsFunc(built.Children, func(c shape.NamedChild) bool { return c.Kind.Empty() })
}
