// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// Job says what a worker is to plan.
type Job struct {
	// Config are the files and folders of the configuration.
	Config []string
	// Namespaces are the operator's namespaces, if they are not those of the configuration.
	Namespaces []string
	// Against are the files and folders of the configuration that works now. Empty means that nothing is known of it.
	Against []string
	// Objects are files with the objects of the cluster. The name "-" stands for the input after the job. Empty means that
	// they are read from the cluster of Kube.
	Objects []string
	Kube    Kube
	// Functions are the functions in Go that may be called.
	Functions []string
	// Workloads says what becomes of workloads.
	Workloads Workloads
	// For is the virtual time that the operator has to come to rest.
	For time.Duration
}

// Kube says which cluster is read.
type Kube struct{ Kubeconfig, Context string }

// Answer is one of the lines that a worker writes: how far it is, a plan, or an error.
type Answer struct {
	// Seen is the number of objects that handlers have run for.
	Seen   int64   `json:",omitempty"`
	Report *Report `json:",omitempty"`
	Error  string  `json:",omitempty"`
}

// ReadJob reads the job of a worker from its input, and returns the rest of the input.
func ReadJob(in io.Reader) (job Job, rest io.Reader, err error) {
	d := json.NewDecoder(in)
	if err := d.Decode(&job); err != nil {
		return job, nil, fmt.Errorf("reading the job: %w", err)
	}
	return job, io.MultiReader(skipNewline(d.Buffered()), in), nil
}

// skipNewline skips the line's end after the job.
func skipNewline(r io.Reader) io.Reader {
	data, _ := io.ReadAll(r) // it is a buffer
	return bytes.NewReader(bytes.TrimPrefix(data, []byte("\n")))
}

// mostMemory is the memory in bytes from which on garbage is collected more often.
const mostMemory = 400 << 20

// Input is what a plan is made of.
type Input struct {
	// Operator is the operator whose changes are planned. Against, if not nil, is the version that works now.
	Operator, Against *dsl.Operator
	// Functions are those that both versions name.
	Functions *Functions
	Objects   Objects

	// seen counts the objects that handlers have run for. It is read outside of the bubble.
	seen atomic.Int64
}

// Operators returns the versions of the operator.
func (in *Input) Operators() []*dsl.Operator {
	if in.Against == nil {
		return []*dsl.Operator{in.Operator}
	}
	return []*dsl.Operator{in.Operator, in.Against}
}

// Work plans in a process of its own, and ends the process: virtual time comes from package testing, which does so. It
// writes an [Answer] for each second that passes, and for the plan.
func Work(job Job, in *Input, out io.Writer) {
	w := &progress{out: json.NewEncoder(out)}
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		os.Stdout = null // package testing says that its test has passed
	}
	os.Args = []string{os.Args[0], "-test.timeout=0"}
	debug.SetMemoryLimit(mostMemory)
	now := time.Now()
	all := testing.InternalTest{Name: "plan", F: func(t *testing.T) {
		defer w.watch(&in.seen)()
		synctest.Test(t, func(*testing.T) {
			<-time.After(time.Until(now)) // the clock of a bubble begins in 2000
			answer := Answer{}
			report, err := Make(job, in)
			if answer.Report = report; err != nil {
				answer = Answer{Error: err.Error()}
			}
			w.write(answer)
		})
	}}
	testing.Main(regexp.MatchString, []testing.InternalTest{all}, nil, nil)
}

// Make makes a plan. It must be called in a bubble of testing/synctest, whose clock should show the present time. It takes
// the objects, so that they do not use memory beside those of the twin.
func Make(job Job, in *Input) (*Report, error) {
	op, namespace := in.Operator, cmp.Or(in.Objects.Namespace, namespaceOf(in.Operator, in.Objects.List))
	report := &Report{Operator: op.Name, Objects: len(in.Objects.List)}
	if len(job.Objects) > 0 {
		if err := checkDump(op, in.Objects.List); err != nil {
			return nil, err
		}
		in.Objects.Warnings = append(in.Objects.Warnings, missingKinds(op, in.Objects.List)...)
	}
	in.Objects.Warnings = append(in.Objects.Warnings, pausesIn(op, in.Objects.List)...)
	missing := missingCRDs(op, in.Objects.List)
	comparer := NewComparer(op, namespace)
	comparer.ignore(missing)
	comparer.hide(in.Objects.List)
	t, warnings := newTwin(append(in.Objects.List, missing...), namespace, job.Workloads)
	report.Warnings = append(in.Objects.Warnings, warnings...)
	limit, all := strictest(op), countChildren(op, in.Objects.List)
	in.Objects.List = nil
	t.makeNamespace()
	t.journal.seen = &in.seen
	if in.Against != nil {
		if err := t.settleOn(in.Against, report, job.For); err != nil {
			return nil, err
		}
		report.Rights = rightsOf(in.Against, op, namespace)
	}
	t.recorder.start()
	t.journal.start()
	in.Functions.start()
	out, err := t.run(op, job.For)
	if err != nil {
		return nil, fmt.Errorf("running operator %s: %w", op.Name, err)
	}
	if report.Rested, report.Failing = out.rested, out.failing; out.refused != nil {
		report.Warnings = append(report.Warnings, fmt.Sprintf("operator run --install-crds would not start: %v", out.refused))
	}
	report.After = out.after.Seconds()
	report.Warnings = append(report.Warnings, t.recorder.lacking(rbac.Of(op, rbac.Settings{Namespace: namespace}))...)
	report.Warnings = append(report.Warnings, t.recorder.held(limit, all)...)
	report.Handlers, report.Calls = t.journal.handlers(), in.Functions.report()
	report.Changes, report.Unknown = comparer.changes(t.recorder), in.Functions.objects()
	report.count()
	report.findUnready()
	report.Refused = t.refusals(op, in.Against)
	return report, nil
}

// settleOn runs the version of the operator that works now. What it changes is no part of the plan.
func (t *twin) settleOn(op *dsl.Operator, report *Report, limit time.Duration) error {
	out, err := t.run(op, limit)
	if err != nil {
		return fmt.Errorf("running the operator that works now: %w", err)
	}
	if !out.rested {
		report.Warnings = append(report.Warnings, "the operator that works now did not come to rest within the time of --for")
	}
	return nil
}

// rightsOf returns the rights that a new version of an operator needs besides those of the old one, and those that it no
// longer needs.
func rightsOf(before, after *dsl.Operator, namespace string) *Rights {
	needed := func(op *dsl.Operator) (out []string) {
		for _, r := range rbac.Of(op, rbac.Settings{Namespace: namespace}) {
			out = append(out, r.String())
		}
		return out
	}
	old, now := needed(before), needed(after)
	out := &Rights{}
	for _, r := range now {
		if !slices.Contains(old, r) {
			out.Added = append(out.Added, r)
		}
	}
	for _, r := range old {
		if !slices.Contains(now, r) {
			out.Dropped = append(out.Dropped, r)
		}
	}
	if len(out.Added)+len(out.Dropped) == 0 {
		return nil
	}
	return out
}

// missingCRDs returns the CRDs of an operator that are not among the objects. A dump may be one of the other objects alone.
func missingCRDs(op *dsl.Operator, objects []*unstructured.Unstructured) (out []*unstructured.Unstructured) {
	for _, r := range op.Resources() {
		if r.CRD == nil {
			continue
		}
		crd := (&unstructured.Unstructured{Object: r.CRD}).DeepCopy()
		if !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == crd.GetKind() && o.GetName() == crd.GetName()
		}) {
			out = append(out, crd)
		}
	}
	return out
}

// defaultNamespace is the namespace of an operator that has left nothing in the cluster.
const defaultNamespace = "handwerk-system"

// namespaceOf returns the namespace that the operator is deployed in: where its register is, or its lock.
func namespaceOf(op *dsl.Operator, objects []*unstructured.Unstructured) string {
	if op.Settings.LeaderElection.Namespace != "" {
		return op.Settings.LeaderElection.Namespace
	}
	names := map[string]string{"ConfigMap": op.Register(), "Secret": op.DigestKey(), "Lease": op.LeaderLock()}
	for _, o := range objects {
		if name := names[o.GetKind()]; name != "" && name == o.GetName() {
			return o.GetNamespace()
		}
	}
	return defaultNamespace
}
