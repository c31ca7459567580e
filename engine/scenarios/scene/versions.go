// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// Versions is a stage on which versions of an operator in YAML follow each other. They have their register in OpsNamespace.
type Versions struct {
	*Stage
	// Log has the lines of the version that runs.
	Log *Log

	metadata string // the operator's, set by NextNamed
}

// PlayVersions plays with the Foo web, before any version was started.
func PlayVersions(t *testing.T, play func(v *Versions)) {
	t.Helper()
	playVersions(t, func(*kit.Cluster) {}, play)
}

// PlayVersionsWithConditions is PlayVersions with Foos that have status.conditions.
func PlayVersionsWithConditions(t *testing.T, play func(v *Versions)) {
	t.Helper()
	playVersions(t, func(c *kit.Cluster) { c.Update(CRDs, "", "foos.example.com", AddConditions) }, play)
}

func playVersions(t *testing.T, prepare func(*kit.Cluster), play func(v *Versions)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: Foos, Kind: "Foo"}, kit.Resource{Name: Bars, Kind: "Bar"})
		prepare(c)
		c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + OpsNamespace + `}}`)
		c.Create(Web)
		play(&Versions{Stage: NewStage(t, c), Log: &Log{}, metadata: "{name: op}"})
	})
}

// Next starts the next version, with these handlers of Foos.
func (v *Versions) Next(handlers ...string) {
	v.T.Helper()
	v.NextResources(`{resource: foos.v1.example.com, handlers: [` + strings.Join(handlers, ", ") + `]}`)
}

// NextResources starts the next version, with these resources.
func (v *Versions) NextResources(resources string) {
	v.T.Helper()
	v.start(OpsNamespace, resources, handlers.Standard())
}

// NextNamed starts the next version, with other metadata of the operator, which later versions keep.
func (v *Versions) NextNamed(metadata string, handlers ...string) {
	v.T.Helper()
	v.metadata = metadata
	v.Next(handlers...)
}

// NextUnregistered starts the next version without a register, as early releases had none.
func (v *Versions) NextUnregistered(names ...string) {
	v.T.Helper()
	v.start("", `{resource: foos.v1.example.com, handlers: [`+strings.Join(names, ", ")+`]}`, handlers.Standard())
}

// NextInGo starts the next version, with functions in Go that its handlers call. It owns ConfigMaps.
func (v *Versions) NextInGo(functions map[string]dsl.Func, names ...string) {
	v.T.Helper()
	var all []dsl.Function
	for name, fn := range functions {
		all = append(all, dsl.Function{Name: name, Func: fn})
	}
	v.NextCalling(all, names...)
}

// NextCalling is NextInGo for functions that say more about themselves.
func (v *Versions) NextCalling(functions []dsl.Function, names ...string) {
	v.T.Helper()
	registry := handlers.Standard()
	for _, f := range functions {
		registry.Function(f)
	}
	v.start(OpsNamespace, `{resource: foos.v1.example.com, owns: [configmaps.v1], handlers: [`+strings.Join(names, ", ")+`]}`, registry)
}

// start stops the version that runs, if one does, and starts the next one.
func (v *Versions) start(namespace, resources string, registry *actions.Registry) {
	v.T.Helper()
	if v.Process != nil {
		Stop(v.Stage)
	}
	op, err := config.Parse("operator.yaml",
		[]byte(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: `+v.metadata+`, resources: [`+resources+`]}`), registry)
	if err != nil {
		v.T.Fatal(err)
	}
	v.Operator = op
	v.Forget()
	v.Log.Take()
	v.Process = v.Start(op, func(s *engine.Settings) { s.Namespace, s.Log = namespace, v.Log.Logger() })
}

// SpoilConfigMap changes the ConfigMap a by hand.
func (v *Versions) SpoilConfigMap(data string) {
	v.T.Helper()
	v.Update(ConfigMaps, "default", "a", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"a": data} })
	v.Settle()
}

// MakeBarsUnreadable makes requests that read Bars fail until the returned function is called.
func (v *Versions) MakeBarsUnreadable() (end func()) {
	list, watch := v.FailWhile("list", "bars.example.org", errors.New("it is down")), v.FailWhile("watch", "bars.example.org", errors.New("it is down"))
	return func() { list(); watch() }
}

// WantChildren fails the test unless these are the children in the default namespace, in the form of "ConfigMap a of app/a".
func (v *Versions) WantChildren(want ...string) {
	v.T.Helper()
	v.Settle()
	var got []string
	for _, resource := range []string{Deployments, ConfigMaps, Services, Bars} {
		for _, o := range v.List(resource, "default") {
			got = append(got, o.GetKind()+" "+o.GetName()+" of "+o.GetAnnotations()[ChildAnnotation])
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
		v.T.Errorf("children (-want +got):\n%s", diff)
	}
}

// WantRegistered fails the test unless the register has these kinds of children of Foos.
func (v *Versions) WantRegistered(want ...string) {
	v.T.Helper()
	v.Settle()
	var got []string
	if o := v.Get(ConfigMaps, OpsNamespace, "op-children"); o != nil {
		data, _ := o.Object["data"].(map[string]any)
		text, _ := data["foos.example.com"].(string)
		got = strings.Fields(text)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		v.T.Errorf("registered kinds (-want +got):\n%s", diff)
	}
}

// WantLog fails the test unless some line of the log has all of these parts.
func (v *Versions) WantLog(parts ...string) {
	v.T.Helper()
	v.Settle()
	all := v.Log.Lines()
	if !slices.ContainsFunc(all, func(line string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
	}) {
		v.T.Errorf("no line has %q:\n%s", parts, strings.Join(all, "\n"))
	}
}
