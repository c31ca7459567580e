// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/cmd/plan"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/handlers"
)

// life is that of one operator and its objects in two namespaces.
type life struct {
	t                *testing.T
	sample           sample
	name             string
	namespace, other string
	// before and after are the folders of the two versions of the configuration.
	before, after string
}

func newLife(t *testing.T, s sample, name string, before, after version) *life {
	l := &life{t: t, sample: s, name: name, namespace: plane.Namespace(t), other: plane.Namespace(t)}
	l.before, l.after = l.scoped(before).write(t), l.scoped(after).write(t)
	return l
}

// namespaces is where a configuration handles Namespaces, in any indentation.
var namespaces = regexp.MustCompile(`(?m)^( +)- resource: namespaces\.v1\n`)

// scoped lets a version handle one Namespace, if it handles Namespaces: those of other tests are none of its business.
func (l *life) scoped(v version) version {
	v = maps.Clone(v)
	selector := "${0}${1}  selector: {matchLabels: {kubernetes.io/metadata.name: " + l.namespace + "}}\n"
	v[operatorFile] = namespaces.ReplaceAllString(v[operatorFile], selector)
	return v
}

// read reads a version of the operator.
func (l *life) read(folder string, functions *plan.Functions) *dsl.Operator {
	l.t.Helper()
	op, err := config.Load([]string{folder + "/" + operatorFile}, handlers.Standard().Instead(functions.Instead))
	if err != nil {
		l.t.Fatal(err)
	}
	op.Name = l.name
	op.Scope.Namespaces = []string{l.namespace, l.other}
	return op
}

// real reads a version of the operator that runs.
func (l *life) real(folder string) *dsl.Operator { return l.read(folder, plan.NewFunctions(nil)) }

// compare returns the difference between what happens and what the plan says, and the warnings of the plan.
func (l *life) compare() (diff string, warnings []string) {
	l.t.Helper()
	objects := strings.NewReplacer("$NAMESPACE", l.namespace, "$OTHER", l.other).Replace(l.sample.objects)
	l.run(l.real(l.before), func() { plane.Apply(l.t, l.namespace, objects) })
	before := l.objects()
	planned, warnings := l.plan(before)
	mark := plane.Mark(l.t)
	l.run(l.real(l.after), func() {})
	written := plane.Writes(l.t, "", mark)
	happened := l.changes(before.List, l.objects().List, written)
	l.t.Logf("it happened that %v", happened)
	return cmp.Diff(happened, planned), warnings
}

// installing is held while CRDs are installed: operators that all bring the same one would change it again and again.
var installing sync.Mutex

// run runs an operator until it rests, and stops it. Begun is called when its CRDs are there.
func (l *life) run(op *dsl.Operator, begun func()) {
	l.t.Helper()
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	settings := plane.Config()
	settings.UserAgent = op.Name
	installing.Lock()
	err := crd.Install(ctx, op, settings, crd.Settings{Log: logr.Discard(), TakeOver: true})
	installing.Unlock()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, r := range op.Resources() {
		if r.CRD != nil {
			plane.AwaitServed(l.t, &unstructured.Unstructured{Object: r.CRD})
		}
	}
	begun()
	e, err := engine.New(op, engine.Settings{Config: settings, Namespace: l.namespace, Identity: op.Name, PodName: op.Name})
	if err != nil {
		l.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	l.rests(e)
	cancel()
	if err := <-ended; err != nil {
		l.t.Error(err)
	}
}

// quiet is how long nothing is written in a namespace that is at rest.
const quiet = 4 * time.Second

// rests returns when an operator has begun, and nothing was written in the namespaces for a while.
func (l *life) rests(e *engine.Engine) {
	l.t.Helper()
	for range 60 {
		mark, begun := plane.Mark(l.t), hasBegun(e)
		<-time.After(quiet) // rest is what does not come, so no event tells of it
		written := plane.Writes(l.t, "", mark)
		if begun && !slices.ContainsFunc(written, func(w cluster.Write) bool { return l.isMine(w.Namespace, w.Name) }) {
			return
		}
	}
	l.t.Fatal("the namespaces do not come to rest")
}

// hasBegun reports whether an operator works, be it that handlers fail, or that expressions do not fit the schemas.
func hasBegun(e *engine.Engine) bool {
	return !slices.ContainsFunc(e.Ready(), func(c ops.Check) bool {
		about, _, _ := strings.Cut(c.Name, "/")
		return c.State != ops.Pass && about != "failing" && about != "expressions"
	})
}

// isMine reports whether an object is in one of the namespaces, or is one of them.
func (l *life) isMine(namespace, name string) bool {
	mine := []string{l.namespace, l.other}
	return slices.Contains(mine, namespace) || namespace == "" && slices.Contains(mine, name)
}

// objects reads what the two versions of the operator work on.
func (l *life) objects() plan.Objects {
	l.t.Helper()
	c := plan.Cluster{Config: plane.Config(), Namespaces: []string{l.namespace}}
	out, err := c.Read(l.t.Context(), l.real(l.before), l.real(l.after))
	if err != nil || len(out.Warnings) > 0 {
		l.t.Fatal(err, out.Warnings)
	}
	out.List = slices.DeleteFunc(out.List, func(o *unstructured.Unstructured) bool {
		return !l.isMine(o.GetNamespace(), o.GetName()) && o.GetKind() != "CustomResourceDefinition"
	})
	return out
}

// plan returns the changes of the plan as lines, and its warnings.
func (l *life) plan(objects plan.Objects) (changes map[string][]string, warnings []string) {
	l.t.Helper()
	functions := plan.NewFunctions(nil)
	op := l.read(l.after, functions)
	list := objects.List
	objects.List = nil
	for _, o := range list {
		objects.List = append(objects.List, o.DeepCopy())
	}
	var report *plan.Report
	now := time.Now()
	synctest.Test(l.t, func(t *testing.T) {
		<-time.After(time.Until(now)) // the clock of a bubble begins in 2000
		var err error
		if report, err = plan.Make(plan.Job{For: 10 * time.Minute, Workloads: plan.WorkloadsRollout}, &plan.Input{Operator: op, Functions: functions, Objects: objects}); err != nil {
			t.Fatal(err)
		}
	})
	if !report.Rested {
		report.Warnings = append(report.Warnings, "the operator does not come to rest")
	}
	mine := slices.DeleteFunc(report.Changes, func(c plan.Change) bool { return !l.isMine(c.Namespace, c.Name) })
	return lines(mine), report.Warnings
}

// changes returns the differences of two states of the cluster, of the objects that the operator wrote.
func (l *life) changes(before, after []*unstructured.Unstructured, written cluster.Writes) map[string][]string {
	l.t.Helper()
	c := plan.NewComparer(l.real(l.before), l.namespace)
	old, now := byName(before), byName(after)
	all := maps.Clone(old)
	maps.Copy(all, now)
	var out []plan.Change
	for key, o := range all {
		plural := strings.TrimSuffix(strings.ToLower(o.GetKind()), "y") // as the audit log names it, but for its ending
		byOperator, status := false, false
		for _, w := range written {
			in := w.Namespace == o.GetNamespace() || w.Resource == "namespaces" // each is in itself, as the audit log has it
			if strings.HasPrefix(w.Resource, plural) && w.Name == o.GetName() && in && strings.HasPrefix(w.UserAgent, l.name) {
				byOperator, status = true, status || w.Subresource == "status"
			}
		}
		change := c.Compare(old[key], now[key], nil, status)
		if change != nil && l.isMine(o.GetNamespace(), o.GetName()) && (byOperator || change.Action == plan.Deleted) && !l.isOwn(o) {
			out = append(out, *change)
		}
	}
	return lines(out)
}

// isOwn reports whether the operator keeps an object for itself.
func (l *life) isOwn(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(l.real(l.before).OwnPlaces(l.namespace), func(p dsl.OwnPlace) bool {
		return p.Namespace == o.GetNamespace() && p.Name == o.GetName()
	})
}

func byName(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		out[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o
	}
	return out
}

// machineTimes are the paths of times that a machine writes.
var machineTimes = regexp.MustCompile(`^status\.(stateSince|history\[\d+\]\.when)$`)

// lines returns changes as lines by object. Of the times of machines it only says that they change: they are those of the clock.
// A real server adds fields to new objects, so these have none.
func lines(changes []plan.Change) map[string][]string {
	out := map[string][]string{}
	for _, c := range changes {
		all := []string{string(c.Action)}
		if c.Action == plan.Changed {
			for _, f := range c.Fields {
				text := f.String()
				if machineTimes.MatchString(f.Path) {
					text = f.Path + " changes"
				}
				all = append(all, text)
			}
		}
		out[c.Kind+" "+c.Namespace+"/"+c.Name] = all
	}
	return out
}
