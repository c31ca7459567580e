// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// ConfigMapTemplate returns the template of a ConfigMap for an apply, with these options.
func ConfigMapTemplate(name string, more ...string) string {
	return name + `: {` + strings.Join(append(more, `template: {apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`}, data: {a: b}}`), ", ") + `}`
}

// AppliesTemplates returns a handler that applies templates. The head is its id, with further fields after a comma.
func AppliesTemplates(head string, templates ...string) string {
	return `{id: ` + head + `, apply: {` + strings.Join(templates, ", ") + `}}`
}

// PlayYAML plays with an operator of these resources, in YAML. The calls of its handlers are noted.
func PlayYAML(t *testing.T, resources string, play func(s *Stage)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: Foos, Kind: "Foo"})
		s := NewStage(t, c)
		op, err := ParseYAML(resources)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range op.Handlers() {
			h.Func = s.Note(h.ID, h.Func)
		}
		s.Operator = op
		play(s)
	})
}

// ParseYAML returns an operator named op with these resources, in YAML's flow style. Its handlers may call test.Nothing.
func ParseYAML(resources string) (*dsl.Operator, error) {
	registry := handlers.Standard()
	registry.Function(dsl.Function{Name: "test.Nothing", Func: Succeeds})
	return config.Parse("operator.yaml", []byte(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [`+
		strings.ReplaceAll(resources, "\t", " ")+`]}`), registry)
}

// PlayConfiguration plays with the operator of a configuration.
func PlayConfiguration(t *testing.T, text string, play func(s *Stage)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: Foos, Kind: "Foo"})
		s := NewStage(t, c)
		var err error
		if s.Operator, err = config.Parse("op.yaml", []byte(text), handlers.Standard()); err != nil {
			t.Fatal(err)
		}
		play(s)
	})
}

// AppliesChild returns a handler that applies one child of a kind, with these options.
func AppliesChild(id, kind, name string, more ...string) string {
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

// LabelsSeen is a handler that labels its object and has no child.
const LabelsSeen = `{id: mark, set: {labels: {seen: "yes"}}}`
