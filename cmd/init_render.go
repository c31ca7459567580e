// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// beginning is a kind of children that init can write.
type beginning struct {
	kind string
	// name is the child's name in expressions.
	name string
	// spec and status are the fields that the child needs, from specFields and statusFields.
	spec, status []string
	// template is the child's template.
	template string
}

// childKinds returns the kinds that init can write.
func childKinds() []string {
	var out []string
	for _, b := range beginnings() {
		out = append(out, b.kind)
	}
	return out
}

// specFields are fields of spec in the order of writing, each with its value in an example object.
var specFields = []struct{ name, field, example string }{
	{"image", `string | required=true description="The image that runs."`, "nginx:stable"},
	{"replicas", `integer | default=1 minimum=0 maximum=50 description="How many of it run."`, "2"},
	{"port", `integer | default=80 minimum=1 maximum=65535 description="The port that it listens on."`, ""},
	{"host", `string | required=true description="The name under which it is reached from outside."`, "www.example.com"},
	{"schedule", `string | default="0 3 * * *" description="When it runs, as cron has it."`, ""},
	{"settings", `"map[string]string"`, "{greeting: hello}"},
}

// statusFields are fields of status, each with its type and its value.
var statusFields = []struct{ name, field, value string }{
	{"readyReplicas", "integer", "${children.%s.?status.?readyReplicas.orValue(0)}"},
	{"url", "string", "http://${self.metadata.name}.${self.metadata.namespace}:${string(self.spec.port)}"},
}

const operatorHead = `# The operator %[1]s keeps the children of every %[2]s.
#
#   operator validate --config operator.yaml
#   operator run --config operator.yaml --install-crds
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata:
  name: %[1]s
resources:
`

const resourceHead = `  - resource: %[2]s
    # What a %[1]s is. "operator crd" prints the CRD. A field is its type and, behind a bar,
    # markers; a map is an object with fields.
    schema:
      kind: %[1]s
      spec:
`

const applyHead = `    handlers:
      # Children are made, kept as they are written here, and taken away with their owner. The condition Ready says
      # whether they are ready.
      # ${…} holds CEL; self is the object.
      - id: children
        apply:
`

// machineText is a machine, with a placeholder for the condition that all children are ready.
const machineText = `    # Where an object is: its state is kept in its status, with the time and the last transitions.
    # "operator graph" draws it; docs/machines.md describes all fields. It sets the condition Ready.
    machine:
      allowCycles: true
      states:
        - name: Starting
          doc: Its children come up.
          condition: Progressing
          transitions:
            - {to: Running, when: "%[1]s", why: Its children are ready.}
          stay: {atMost: 10m, then: Stalled}
        - name: Running
          doc: Its children are ready.
          ready: true
          transitions:
            - {to: Starting, when: "!(%[1]s)", why: A child is not ready any more.}
        - name: Stalled
          doc: Its children did not come up in time.
          condition: Degraded
          transitions:
            - {to: Running, when: "%[1]s", why: Its children are ready.}
`

// render returns the configuration.
func render(f *initFlags) string {
	return fmt.Sprintf(operatorHead, f.name, f.kind) + resourceText(f)
}

// resourceText returns the entry of a resource in the configuration, indented by two.
func resourceText(f *initFlags) string {
	var out strings.Builder
	chosen := f.beginnings()
	fmt.Fprintf(&out, resourceHead, f.kind, f.resource)
	for _, field := range specFields {
		if slices.ContainsFunc(chosen, func(b beginning) bool { return slices.Contains(b.spec, field.name) }) {
			fmt.Fprintf(&out, "        %s: %s\n", field.name, field.field)
		}
	}
	status, columns, values := f.status(chosen)
	if len(status) > 0 {
		fmt.Fprintf(&out, "      # Conditions are part of every status.\n      status:\n%s", strings.Join(status, ""))
	}
	shows := "        - {name: Ready, path: '.status.conditions[?(@.type==\"Ready\")].status'}\n"
	if f.machine {
		shows = "        - {name: State, path: .status.state}\n"
	}
	fmt.Fprintf(&out, "      # What kubectl get shows, beside the name and the age.\n      columns:\n%s%s", shows, strings.Join(columns, ""))
	var ready []string
	for _, b := range chosen {
		ready = append(ready, "ready(children."+b.name+")")
	}
	all := strings.Join(ready, " && ")
	if f.machine {
		fmt.Fprintf(&out, machineText, all)
	}
	out.WriteString(applyHead)
	for _, b := range chosen {
		fmt.Fprintf(&out, "          %s:\n%s", b.name, indent(b.template, "            "))
	}
	if len(values) == 0 {
		return out.String()
	}
	out.WriteString("      # What people see. It is computed again whenever a child changes.\n      - id: status\n        set:\n          status:\n")
	out.WriteString(strings.Join(values, ""))
	return out.String()
}

// beginnings returns the chosen children, in init's order.
func (f *initFlags) beginnings() []beginning {
	return slices.DeleteFunc(beginnings(), func(b beginning) bool { return !slices.Contains(f.children, b.kind) })
}

// status returns the lines for fields of status: their types, their columns and their values.
func (f *initFlags) status(chosen []beginning) (types, columns, values []string) {
	for _, field := range statusFields {
		i := slices.IndexFunc(chosen, func(b beginning) bool { return slices.Contains(b.status, field.name) })
		if i < 0 {
			continue
		}
		value := field.value
		if strings.Contains(value, "%s") {
			value = fmt.Sprintf(value, chosen[i].name)
		}
		types = append(types, fmt.Sprintf("        %s: %s\n", field.name, field.field))
		columns = append(columns, fmt.Sprintf("        - {name: %s, path: .status.%s}\n", heading(field.name), field.name))
		values = append(values, fmt.Sprintf("            %s: %s\n", field.name, value))
	}
	return types, columns, values
}

// heading returns the heading of a column for a field.
func heading(field string) string {
	if field == "url" {
		return "URL"
	}
	return "Replicas"
}

// example writes an object.
func example(f *initFlags) string {
	name, err := dsl.ParseResourceName(f.resource)
	if err != nil {
		return "" // it was checked before
	}
	var out strings.Builder
	fmt.Fprintf(&out, "apiVersion: %s/%s\nkind: %s\nmetadata:\n  name: example\nspec:\n", name.Group, name.Version, f.kind)
	for _, field := range specFields {
		used := slices.ContainsFunc(f.beginnings(), func(b beginning) bool { return slices.Contains(b.spec, field.name) })
		if used && field.example != "" {
			fmt.Fprintf(&out, "  %s: %s\n", field.name, field.example)
		}
	}
	return strings.TrimSuffix(out.String(), "spec:\n")
}

// firstCase writes a case for the example object.
func firstCase(f *initFlags) string {
	plural, _, _ := strings.Cut(f.resource, ".")
	return fmt.Sprintf(`# What the operator does, held by cases. They need no cluster, and an hour in them costs nothing:
#
#   operator test .
given: example.yaml
cases:
  - name: A %[1]s becomes ready
    steps:
      - ready: %[2]s/example
    expect:
      conditions: {%[2]s/example: {Ready: true}}
`, f.kind, plural)
}

// indent indents every line.
func indent(text, by string) string {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimPrefix(text, "\n")) {
		out.WriteString(by + line)
	}
	return out.String()
}
