// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/crd"
)

type resource struct {
	Resource  string           `yaml:"resource" required:"true" doc:"The resource in kubectl's spelling, as in deployments.v1.apps. Without a version: the one that the API server prefers. Built-in kinds may have another name of kubectl, as deploy or Deployment."`
	Schema    *crd.Schema      `yaml:"schema" doc:"The schema of a resource of your own: operator crd prints its CRD, operator run --install-crds installs it, and expressions are checked without a cluster. Absent: the CRD comes from elsewhere."`
	Resync    time.Duration    `yaml:"resync" doc:"The period after which each object is handled again, changed or not (cause resync). Absent: never."`
	Workers   int              `yaml:"workers" min:"1" default:"4" doc:"How many objects of the resource are handled at the same time."`
	Lifecycle lifecycle        `yaml:"lifecycle" default:"all" doc:"Which handlers of an object run in one reconcile. all: all that are due, in order, with one write for all of them. oneByOne: the first one that is due; the next one runs after its change is written and seen."`
	Cache     dsl.CacheProfile `yaml:"cache" default:"compact" doc:"What is held of each object in memory. compact: its JSON, compressed. metadata: its metadata alone; handlers neither see nor set spec and status. live: its key alone; each reconcile reads the object from the API server."`
	Keep      []dsl.Path       `yaml:"keep" unique:"true" doc:"For cache compact: the fields to hold, as in spec.replicas, beside metadata, status.conditions and status.observedGeneration. What expressions read, what set sets, and the fields of typed Go code must be among them; another write by Go fails for good. Default: what the handlers read and set, if all of them are apply and set; else all fields."`
	Ignore    []dsl.Path       `yaml:"ignore" unique:"true" doc:"Fields whose changes do not count, as in spec.lastSync or metadata.annotations[\"example.com/seen\"]: they run no handler, and old and diff leave them out. A handler that names or reads one itself is a fault. Cause event reports all changes."`
	Selector  *selector        `yaml:"selector" min:"1" doc:"Which objects the operator sees; the API server selects. Absent: all."`
	Ready     *bool            `yaml:"ready" doc:"Whether the engine keeps the condition Ready of the objects. Default: true if the resource has a schema, a handler with apply runs for reconcile, and all handlers are known not to set Ready; else false."`
	Limits    *limits          `yaml:"limits" doc:"Limits of this resource alone. Absent: it shares settings.limits."`
	Owns      []owned          `yaml:"owns" unique:"true" doc:"Resources whose objects are children: a change of one runs handlers with cause child for its owner. Each is its name, or a map that says how it is held. Kinds that apply names need not be here."`
	Related   []relation       `yaml:"related" doc:"Objects that handlers look at without owning them; a change of one runs handlers with cause related."`
	Let       lets             `yaml:"let" min:"1" mistaken:"vars,variables,locals,define" doc:"Named expressions, which all expressions of the resource know as variables, as in let: {wanted: self.spec.replicas > 0}. They may use each other. Absent: none."`
	Machine   machines         `yaml:"machine" doc:"A finite state machine over each object, or a list of them. Its state is kept in the object's status. It runs before the handlers."`
	Handlers  []handler        `yaml:"handlers" required:"true" unless:"schedule,daemons,machine,schema,validate,mutate" doc:"What to do for each object, in this order. A resource has handlers, daemons, a machine, a schedule or rules; or a schema alone, if its handlers are declared in Go."`
	Daemons   []attendant      `yaml:"daemons" doc:"Go functions that run for each object all the time, beside the handlers. They start after the first reconcile of the object, and end when it is deleted or the filters do not match any more."`
	Validate  []validationRule `yaml:"validate" doc:"Rules that decide whether the API server stores an object of the resource."`
	Mutate    []mutationRule   `yaml:"mutate" doc:"Rules that change an object before the API server stores it. They run before the rules of validate."`
	Schedule  schedule         `yaml:"schedule" doc:"What to do by time (every, pause or cron) for the resource as a whole; the variable objects has all objects. Without leaderElection each process does it."`
}

// lifecycle says which handlers of an object run in one reconcile.
type lifecycle string

const (
	allAtOnce lifecycle = "all"
	oneByOne  lifecycle = "oneByOne"
)

// Choices returns both values.
func (lifecycle) Choices() (string, []string) {
	return "lifecycle", []string{string(allAtOnce), string(oneByOne)}
}

// watched is a resource that is being made from a document.
type watched struct {
	compiling
	at   path
	form *resource
	// children are the named children so far.
	children children
	// siblings are all handlers of the resource.
	siblings []actions.Sibling
}

// newWatched returns a resource to which nothing was added.
func newWatched(c compiling, form *resource) *watched {
	return &watched{compiling: c, form: form, children: children{map[string]maker{}, map[string]keeper{}}}
}

// resource adds resource i of a part.
func (l *loader) resource(op *dsl.Operator, p *part, i int) {
	form := &p.form.Resources[i]
	w := newWatched(compiling{p, l, op.Resource(form.Resource, nil), l.lets}, form)
	w.at = path("resources").Index(i)
	l.places[w.out] = place{p, w.at}
	w.out.Resync = w.form.Resync
	w.out.Workers = w.form.Workers
	if w.form.Lifecycle == oneByOne {
		w.out.Lifecycle = dsl.OneByOne
	}
	w.out.Cache = w.form.Cache
	w.out.Ready = w.form.Ready
	if w.form.Limits != nil {
		w.out.Limits = new(w.form.Limits.limits())
	}
	if w.out.Keep = w.form.Keep; len(w.form.Keep) > 0 {
		w.out.KeepAt = w.where(w.at.Key("keep"))
	}
	for i, field := range w.form.Keep {
		w.known(w.at.Key("keep").Index(i), field)
	}
	w.out.Ignore = w.form.Ignore
	for i, field := range w.form.Ignore {
		w.known(w.at.Key("ignore").Index(i), field)
	}
	w.exists(w.at.Key("resource"), w.out.Name)
	for i := range w.form.Owns {
		w.owns(w.at.Key("owns").Index(i), &w.form.Owns[i])
	}
	w.resourceLets()
	if w.form.Selector != nil {
		w.selector(w.at.Key("selector"), w.form.Selector)
	}
	for i := range w.form.Related {
		w.relation(w.at.Key("related").Index(i), &w.form.Related[i])
	}
	w.customResource()
	(&converting{watched: w}).conversions()
	w.siblings = siblingsOf(w.form)
	for i := range w.form.Machine.list {
		w.machine(i)
	}
	for i := range w.form.Handlers {
		w.handler(w.at.Key("handlers").Index(i), &w.form.Handlers[i])
	}
	for i := range w.form.Daemons {
		w.daemon(w.at.Key("daemons").Index(i), &w.form.Daemons[i])
	}
	for i := range w.form.Schedule {
		w.scheduled(w.at.Key("schedule").Index(i), &w.form.Schedule[i])
	}
	w.rules(w.form.Validate, w.form.Mutate)
	w.kindless()
	w.forgotten()
	if form := w.form; form.Schema != nil && len(form.Handlers)+len(form.Daemons)+len(form.Machine.list)+len(form.Schedule) == 0 {
		w.out.Open = true
		l.open = append(l.open, w)
	}
}

// forgotten checks that no handler reads a child that another one applies and forgets. It would see the child only in a
// reconcile in which the other one runs, too.
func (w *watched) forgotten() {
	for _, made := range w.out.Makes {
		for _, h := range w.out.Handlers() {
			if made.Forgotten && slices.Contains(h.Known.Reads.ChildNames, made.Name) && !slices.Contains(h.Makers, made.Maker) {
				by := w.children.made[made.Name]
				by.Fault(by.at.Key("ownership"), "handler %s reads the child, which none applies and forgets: want labelled, or no ownership", h.ID)
			}
		}
	}
}

// kindless checks children whose kind is computed when their handler runs.
func (w *watched) kindless() {
	for _, made := range w.out.Makes {
		if made.Kind.Empty() && !w.Has(w.at.Key("owns")) {
			by := w.children.made[made.Name]
			by.Fault(by.at, "its kind is worked out, so the resource must say with owns what it may be")
		}
	}
}
