// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// The form of a configuration. Its tags are those of package dsl/form; the decoder, the JSON Schema and the
// reference read them.

type document struct {
	APIVersion apiVersion `yaml:"apiVersion" required:"true" doc:"The version of this form."`
	Kind       kind       `yaml:"kind" required:"true" doc:"Always Operator."`
	Metadata   metadata   `yaml:"metadata" required:"true" doc:"Who the operator is. Several documents of one name make one operator."`
	Scope      *scope     `yaml:"scope" mistaken:"namespaces,namespaceSelector" min:"1" doc:"Where the operator works. Only in one of its documents."`
	Settings   *settings  `yaml:"settings" doc:"The operator's own settings; all have defaults. Only in one of its documents."`
	Indexes    []index    `yaml:"indexes" doc:"Values by keys, worked out from the objects of a resource, which expressions read: indexes.<name>[key]. A change under a key runs the handlers that have read it."`
	Startup    activities `yaml:"startup" doc:"What each process does when it begins, before it watches anything: one after the other, each until it succeeds. One that failed for good ends the process."`
	Cleanup    activities `yaml:"cleanup" doc:"What each process does when it ends, after its handlers have ended."`
	Health     probes     `yaml:"health" doc:"Checks in /healthz beside the operator's own: while one fails, the process is to be restarted."`
	Ready      probes     `yaml:"ready" doc:"Checks in /readyz beside the operator's own: while one fails, the process is not ready, and works on."`
	Resources  []resource `yaml:"resources" doc:"The resources to watch, each in one document only."`
}

type metadata struct {
	Name   string     `yaml:"name" required:"true" doc:"The operator's name, a DNS label. The field manager, finalizer, annotation prefix and Event source derive from it. With another name every object is new, unless it says was."`
	Domain string     `yaml:"domain" default:"handwerk.dev" doc:"What ends the prefix of the operator's annotations and of its finalizer, as in example.com. Only in one of its documents."`
	Was    form.Texts `yaml:"was" doc:"A name that the operator had in an earlier version, or several. Where its domain was another one: the prefix that its finalizer and annotations have before the slash, as in foo.example.com. What it finds on objects under that name becomes its own. Only in one of its documents."`
}

type scope struct {
	Namespaces        globs              `yaml:"namespaces" unique:"true" doc:"Names and globs (team-*), live while the operator runs. One that begins with ! takes out what it matches. Resources that have no namespace are not affected."`
	NamespaceSelector *namespaceSelector `yaml:"namespaceSelector" mistaken:"selector,labelSelector,labels" min:"1" doc:"Which namespaces by their labels, live while the operator runs. With namespaces: those that match both."`
}

// globs are names and globs of namespaces.
type globs []string

// ReadForm reads a list.
func (g *globs) ReadForm(d *form.Decoder, p path, n *yaml.Node) bool {
	if n.Kind == yaml.MappingNode {
		d.FaultAt(n, p, "want a list, found a map (labels of namespaces belong in namespaceSelector)")
		return false
	}
	return d.Value(p, n, (*[]string)(g))
}

// DescribeForm describes a list.
func (*globs) DescribeForm(d *form.Describer) *form.Schema { return d.Of(reflect.TypeFor[[]string]()) }

type namespaceSelector struct {
	MatchLabels      map[string]string `yaml:"matchLabels" doc:"Labels that a namespace must have, with these values."`
	MatchExpressions []requirement     `yaml:"matchExpressions" doc:"Conditions on labels."`
}

type settings struct {
	LeaderElection *leaderElection `yaml:"leaderElection" doc:"How several processes of this operator agree on who works. Absent: every process works."`
	GracePeriod    time.Duration   `yaml:"gracePeriod" default:"20s" doc:"How long handlers may go on after a stop was asked for."`
	QPS            float32         `yaml:"qps" min:"0.1" doc:"The most requests a second to the API server. Absent: no limit on this side."`
	Burst          int             `yaml:"burst" min:"1" doc:"How many requests may exceed qps for a moment. Twice qps by default. Needs qps."`
	Events         dsl.EventsMode  `yaml:"events" default:"warnings" doc:"Which Events the operator sends of its own accord. warnings: of handlers that fail, and of what is held. changes: of children that it created and deleted, too. What handlers report is always sent."`
	History        *amount         `yaml:"history" default:"16Mi" doc:"How much memory the last 20 passes over each object may take, which operator why shows. The oldest go first, and one object takes a fiftieth of it at most. 0 keeps none."`
}

type leaderElection struct {
	Mode          dsl.LeaderMode `yaml:"mode" required:"true" doc:"none: every process works. lease: the holder of a Lease works, the others wait with warm caches. life: the first pod to own the lock works until it is gone."`
	Name          string         `yaml:"name" doc:"The lock's name. By default the operator's name with -leader behind it."`
	Namespace     string         `yaml:"namespace" doc:"The lock's namespace. By default the pod's; required outside a cluster."`
	LeaseDuration time.Duration  `yaml:"leaseDuration" default:"15s" doc:"How long a standby waits after the last renewal it saw. Only for mode lease."`
	RenewDeadline time.Duration  `yaml:"renewDeadline" default:"10s" doc:"How long the leader tries to renew before it gives up; less than leaseDuration. Only for mode lease."`
	RetryPeriod   time.Duration  `yaml:"retryPeriod" default:"2s" doc:"The time between tries; 1.2 times of it are less than renewDeadline. Only for mode lease."`
}

type (
	apiVersion string
	kind       string
)

// The values of apiVersion and kind.
const (
	APIVersion = "handwerk.dev/v1alpha1"
	Kind       = "Operator"
)

func (apiVersion) Choices() (string, []string) { return "apiVersion", []string{APIVersion} }
func (kind) Choices() (string, []string)       { return "kind", []string{Kind} }

// path is the path of a value in a document.
type path = form.Path

// part is one document of an operator.
type part struct {
	*form.Decoder
	source *source.Text
	root   *yaml.Node
	form   document
	// found are the faults that the decoder does not find, with their places.
	found source.Faults
	// strays: the document has unknown fields, so a missing field may be a mistyped one.
	strays bool
}

// faults returns all faults of the document.
func (p *part) faults() source.Faults {
	out := slices.Clone(p.found)
	for _, f := range p.Faults {
		out = append(out, source.Fault{File: p.source.Name, Line: f.Line, Column: f.Column, Path: string(f.At), Message: f.Message})
	}
	return out
}

// read decodes the document, and reports whether it could.
func (p *part) read() bool {
	return p.Struct("", p.root, &p.form, &form.Others{Strayed: func() { p.strays = true }})
}

// foreign reports whether a document is not for an operator, such as a CRD in the same folder, and returns its
// kind. A document that nearly has the kind of an operator is a mistake, and not foreign.
func foreign(root *yaml.Node) (what string, is bool) {
	version, kind := headerOf(root, "apiVersion"), headerOf(root, "kind")
	group, _, grouped := strings.Cut(version, "/")
	own, _, _ := strings.Cut(APIVersion, "/")
	if version == "" || kind == "" || kind == Kind {
		return "", false
	}
	if _, near := words.Nearest(group, []string{own}); near && grouped {
		return "", false
	}
	return kind + " of " + version, true
}

// headerOf returns the text of a field of a document; empty if it is missing.
func headerOf(root *yaml.Node, field string) string {
	for i := 0; root.Kind == yaml.MappingNode && i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == field && form.IsText(root.Content[i+1]) {
			return root.Content[i+1].Value
		}
	}
	return ""
}

// within makes a fault at a value, or at a position in its text if line and column are not zero.
func (p *part) within(at path, line, column int, message string) source.Fault {
	return p.source.Fault(p.Nearest(at), at, line, column, message)
}

// where returns the place of a value, for faults of other values.
func (p *part) where(at path) string {
	n := p.Nearest(at)
	return fmt.Sprintf("%s:%d:%d", p.source.Name, n.Line, n.Column)
}

// line names the file and the line of a value.
func (p *part) line(at path) string {
	return fmt.Sprintf("%s:%d", p.source.Name, p.Nearest(at).Line)
}

// compile makes the operator and notes faults that decoding does not find. If there are faults, the operator is
// incomplete.
func (l *loader) compile() *dsl.Operator {
	op := dsl.New("")
	for _, other := range l.foreign {
		op.Skipped = append(op.Skipped, other.Error())
	}
	l.metadata(op)
	if p := l.only("scope"); p != nil && p.form.Scope != nil {
		op.Scope = dsl.Scope{Namespaces: p.form.Scope.Namespaces}
		if s := p.form.Scope.NamespaceSelector; s != nil {
			op.Scope.NamespaceSelector = p.labelSelector("scope.namespaceSelector", &selector{MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions})
		}
	}
	if p := l.only("settings"); p != nil && p.form.Settings != nil {
		s := p.form.Settings
		op.Settings = dsl.Settings{GracePeriod: s.GracePeriod, QPS: s.QPS, Burst: s.Burst, Events: s.Events, History: (*int64)(s.History)}
		if s.LeaderElection != nil {
			op.Settings.LeaderElection = dsl.LeaderElection(*s.LeaderElection)
		}
	}
	for _, p := range l.parts {
		for i := range p.form.Indexes {
			l.index(op, p, i)
		}
		l.activities(op, p, dsl.Startup, p.form.Startup)
		l.activities(op, p, dsl.Cleanup, p.form.Cleanup)
		l.activities(op, p, dsl.HealthProbe, p.form.Health)
		l.activities(op, p, dsl.ReadyProbe, p.form.Ready)
		for i := range p.form.Resources {
			l.resource(op, p, i)
		}
	}
	return op
}

// only returns the part that has a value at the path. It notes a fault in other parts that have one, too.
func (l *loader) only(at path) *part {
	var first *part
	for _, p := range l.parts {
		switch {
		case !p.Has(at):
		case first == nil:
			first = p
		default:
			p.FaultKey(at, "must be in one document only (it is at %s already)", first.where(at))
		}
	}
	return first
}

func (l *loader) metadata(op *dsl.Operator) {
	const at = path("metadata.name")
	var first *part
	for _, p := range l.parts {
		name := p.form.Metadata.Name
		switch {
		case name == "":
			continue
		case first == nil:
			first = p
			op.Name = name
		case name != op.Name:
			p.Fault(at, "%s is another operator than %s at %s; load them apart", form.Quoted(name), form.Quoted(op.Name), first.where(at))
		}
	}
	if p := l.only("metadata.domain"); p != nil {
		op.Domain = p.form.Metadata.Domain
	}
	if p := l.only("metadata.was"); p != nil {
		op.Was = p.form.Metadata.Was
	}
}
