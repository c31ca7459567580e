// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path/filepath"
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
	APIVersion apiVersion `yaml:"apiVersion" required:"true" doc:"The version of this form of configuration."`
	Kind       kind       `yaml:"kind" required:"true" doc:"Always Operator."`
	Metadata   metadata   `yaml:"metadata" required:"true" doc:"The name of the operator. Documents with the same name make one operator."`
	Scope      *scope     `yaml:"scope" mistaken:"namespaces,namespaceSelector" min:"1" doc:"The namespaces that the operator works in. Absent: the whole cluster. In one of its documents only."`
	Settings   *settings  `yaml:"settings" doc:"Settings of the process: leader election, limits, Events. All have defaults. In one of its documents only."`
	Let        lets       `yaml:"let" min:"1" mistaken:"vars,variables,locals,define" doc:"Named expressions, which all expressions of the operator know as variables. They may use each other, self, cause, now and indexes. Absent: none."`
	Indexes    []index    `yaml:"indexes" doc:"Look-up tables over the objects of a resource, which expressions read as indexes.<name>[key]. A change under a key runs the handlers that have read it."`
	Startup    activities `yaml:"startup" doc:"Handlers that each process runs when it starts, before it watches anything: one after the other, each until it succeeds. One that fails for good ends the process."`
	Cleanup    activities `yaml:"cleanup" doc:"Handlers that each process runs when it stops, after all other handlers have ended."`
	Health     probes     `yaml:"health" doc:"Handlers that are checks of /healthz, beside the operator's own checks. While one fails, a liveness probe restarts the process."`
	Ready      probes     `yaml:"ready" doc:"Handlers that are checks of /readyz, beside the operator's own checks. While one fails, the process is not ready; it works on."`
	Admission  []admitted `yaml:"admission" doc:"Rules about requests to write objects of resources that the operator does not handle, each in one document only."`
	Resources  []resource `yaml:"resources" doc:"The resources to watch, each in one document only."`
}

type metadata struct {
	Name   string     `yaml:"name" required:"true" doc:"The operator's name, a DNS label. The field manager, the finalizer, the prefix of annotations and the source of Events derive from it. Under another name every object is new to the operator, unless was has the earlier name."`
	Domain string     `yaml:"domain" default:"handwerk.dev" doc:"The domain in the names of the operator's annotations and of its finalizer: with example.com, operator foo has foo.example.com/finalizer. In one of its documents only."`
	Was    form.Texts `yaml:"was" doc:"Names that the operator had in earlier versions, one or a list. If the domain was another one, too: the part before the slash, as in foo.example.com. What the operator finds on objects under such a name becomes its own. In one of its documents only."`
}

type scope struct {
	Namespaces        globs              `yaml:"namespaces" unique:"true" doc:"Names and globs of namespaces, as in team-*. One that begins with ! excludes what it matches. Namespaces that are created later count, too. Absent: all. Cluster-scoped resources are not affected."`
	NamespaceSelector *namespaceSelector `yaml:"namespaceSelector" mistaken:"selector,labelSelector,labels" min:"1" doc:"The namespaces by their labels, which may change while the operator runs. With namespaces: those that match both. Absent: all."`
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
	MatchExpressions []requirement     `yaml:"matchExpressions" doc:"Conditions on labels; all must hold."`
}

type settings struct {
	LeaderElection *leaderElection `yaml:"leaderElection" doc:"How the processes of this operator agree on the one that works. Absent: every process works."`
	GracePeriod    time.Duration   `yaml:"gracePeriod" default:"20s" doc:"The time that running handlers have to end after the process was asked to stop."`
	QPS            float32         `yaml:"qps" min:"0.1" doc:"The most requests to the API server in a second. Absent: the operator sets no limit."`
	Burst          int             `yaml:"burst" min:"1" doc:"How many requests may be sent at once, beyond qps. Default: twice qps. Needs qps."`
	Events         dsl.EventsMode  `yaml:"events" default:"warnings" doc:"Which Events the operator sends by itself. warnings: about handlers that fail, and objects that are held. changes: also about children that it created or deleted. log: besides that, lines that handlers log. Events of handlers are always sent."`
	History        *amount         `yaml:"history" default:"16Mi" doc:"The memory for the last 20 reconciles of each object, which operator why shows: bytes, or an amount as in 16Mi. The oldest reconciles go first; one object takes a fiftieth at most. 0 keeps none."`
	Limits         *limits         `yaml:"limits" doc:"Limits that all resources without limits of their own share."`
}

type leaderElection struct {
	Mode          dsl.LeaderMode `yaml:"mode" required:"true" doc:"none: every process works. lease: the holder of a Lease works, the others wait with full caches. life: the first pod that owns the lock works until it is gone."`
	Name          string         `yaml:"name" doc:"The name of the Lease or the lock. Default: the operator's name with -leader behind it."`
	Namespace     string         `yaml:"namespace" doc:"The namespace of the Lease or the lock. Default: that of the pod; required outside a cluster."`
	LeaseDuration time.Duration  `yaml:"leaseDuration" default:"15s" doc:"The time after the last renewal that it saw, after which another process takes over. Only for mode lease."`
	RenewDeadline time.Duration  `yaml:"renewDeadline" default:"10s" doc:"The time in which the leader must renew the Lease, or it stops working; less than leaseDuration. Only for mode lease."`
	RetryPeriod   time.Duration  `yaml:"retryPeriod" default:"2s" doc:"The time between two tries to get or to renew the Lease; 1.2 times this must be less than renewDeadline. Only for mode lease."`
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
	// dir is the directory of the configuration. user is the place that uses a part; empty for a document of the operator.
	dir, user string
}

// faults returns all faults of the document.
func (p *part) faults() source.Faults {
	var read source.Faults
	for _, f := range p.Faults {
		read = append(read, source.Fault{File: p.source.Name, Line: f.Line, Column: f.Column, Path: string(f.At), Message: f.Message})
	}
	return slices.Concat(p.found, usedAt(read, p.user))
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
	switch {
	case version == "" || kind == "" || kind == Kind:
		return "", false
	case version == APIVersion && kind == PartKind:
		return kind + " of " + version, true // handlers name its file, if they use it
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
	out := fmt.Sprintf("%s:%d:%d", p.source.Name, n.Line, n.Column)
	if p.user != "" {
		out += ", used at " + p.user
	}
	return out
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
		if _, used := l.texts[filepath.Clean(other.File)]; !used {
			op.Skipped = append(op.Skipped, other.Error())
		}
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
		if s.Limits != nil {
			op.Settings.Limits = s.Limits.limits()
		}
		if s.LeaderElection != nil {
			op.Settings.LeaderElection = dsl.LeaderElection(*s.LeaderElection)
		}
	}
	l.operatorLets(op)
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
		for i := range p.form.Admission {
			l.admitted(op, p, i)
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
