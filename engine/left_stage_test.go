// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/handlers"
)

const (
	services = "services.v1"
	// inOps is where the operator's register is.
	inOps = "ops"
)

// versions is a stage on which versions of an operator in YAML follow each other.
type versions struct {
	*stage
	log *lines
	// metadata is the operator's, that of op where it is empty.
	metadata string
}

// follow plays on a stage with the Foo web, whose operator has its register in a namespace.
func follow(t *testing.T, play func(v *versions)) {
	t.Helper()
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"}, enginetest.Resource{Name: bars, Kind: "Bar"})
		c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
		c.Create(web)
		play(&versions{stage: newStage(t, c), log: &lines{}})
	})
}

// version stops the version that runs and starts one with these handlers of Foos.
func (v *versions) version(handlers ...string) {
	v.t.Helper()
	v.resources(`{resource: foos.v1.example.com, handlers: [` + strings.Join(handlers, ", ") + `]}`)
}

// resources is version with the resources themselves, in a namespace that registers.
func (v *versions) resources(resources string) {
	v.t.Helper()
	v.start(inOps, resources)
}

// unregistered is version for a release that knew no register.
func (v *versions) unregistered(handlers ...string) {
	v.t.Helper()
	v.start("", `{resource: foos.v1.example.com, handlers: [`+strings.Join(handlers, ", ")+`]}`)
}

func (v *versions) start(namespace, resources string) {
	v.t.Helper()
	if v.Process != nil {
		if err := v.Process.Stop(); err != nil {
			v.t.Error(err)
		}
	}
	metadata := v.metadata
	if metadata == "" {
		metadata = "{name: op}"
	}
	op, err := config.Parse("operator.yaml", []byte(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: `+metadata+`, resources: [`+resources+`]}`),
		handlers.Standard())
	if err != nil {
		v.t.Fatal(err)
	}
	v.Operator = op
	v.Forget()
	v.log.take()
	v.Process = v.Start(op, func(s *engine.Settings) { s.Namespace, s.Log = namespace, v.log.logger(s.Log) })
}

// has fails the test unless these are the children that there are.
func (v *versions) has(want ...string) {
	v.t.Helper()
	v.Settle()
	var got []string
	for _, resource := range []string{deployments, configMaps, services, bars} {
		for _, o := range v.List(resource, "default") {
			got = append(got, o.GetKind()+" "+o.GetName()+" of "+o.GetAnnotations()["op.handwerk.dev/child"])
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
		v.t.Errorf("children (-want +got):\n%s", diff)
	}
}

// registered fails the test unless these are the kinds of children of Foos in the register.
func (v *versions) registered(want ...string) {
	v.t.Helper()
	v.Settle()
	var got []string
	if o := v.Get(configMaps, inOps, "op-children"); o != nil {
		data, _ := o.Object["data"].(map[string]any)
		text, _ := data["foos.example.com"].(string)
		got = strings.Fields(text)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		v.t.Errorf("registered kinds (-want +got):\n%s", diff)
	}
}

// Handlers with a child each; kind says what it is of.
func childOf(id, kind, name string, more ...string) string {
	version := map[string]string{"Deployment": "apps/v1", "Bar": "example.org/v1"}[kind]
	if version == "" {
		version = "v1"
	}
	child := `{apiVersion: ` + version + `, kind: ` + kind + `, metadata: {name: ` + name + `}}`
	if len(more) > 0 {
		child = `{template: ` + child + `, ` + strings.Join(more, ", ") + `}`
	}
	return `{id: ` + id + `, apply: {` + name + `: ` + child + `}}`
}

// seesIt is a handler that makes nothing.
const seesIt = `{id: tells, set: {labels: {seen: "yes"}}}`

// lines are what an operator logs for everybody.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger(logr.Logger) logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, args)
	}, funcr.Options{})
}

func (l *lines) take() (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out, l.all = l.all, nil
	return out
}

// says fails the test unless some line has all of these parts.
func (v *versions) says(parts ...string) {
	v.t.Helper()
	v.Settle()
	all := v.log.take()
	v.log.all = all // others may look for other lines
	if !slices.ContainsFunc(all, func(line string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
	}) {
		v.t.Errorf("no line has %q:\n%s", parts, strings.Join(all, "\n"))
	}
}

// setField sets a field of an object.
func (v *versions) setField(o *unstructured.Unstructured, value any, path ...string) {
	v.t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		v.t.Error(err)
	}
}
