// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/functions"
)

// using returns an operator with a schema whose handlers are given.
func using(handlers ...string) string {
	return `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: shop}
let: {owner: self.metadata.name}
resources:
  - resource: shops.v1.example.com
    schema:
      kind: Shop
      spec: {image: string, replicas: integer | default=1, sites: "[]string"}
    handlers:
` + strings.Join(handlers, "") + "\n"
}

// user is a handler that uses a part.
func user(use string) string { return "      - id: web\n        use: " + use + "\n" }

// web is a part that applies a Deployment.
const web = `apiVersion: handwerk.dev/v1alpha1
kind: Part
doc: A Deployment with one container.
parameters:
  name: string | required=true
  image: string | default=nginx
  replicas: integer | default=1 minimum=0 maximum=9
  labels: map[string]string | default={}
let:
  shown: labels
apply:
  web:
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "${name}", labels: "${shown}"}
    spec:
      replicas: ${replicas}
      selector: {matchLabels: {web: "${name}"}}
      template:
        metadata: {labels: {web: "${name}"}}
        spec: {containers: [{name: web, image: "${image}"}]}
`

// note is a part that writes a line to the log; its body may be replaced.
func note(body string) string {
	return "apiVersion: handwerk.dev/v1alpha1\nkind: Part\n" + body + "\n"
}

// written writes files to a directory.
func written(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFaultsOfPartsAreReportedWhereTheyAre holds the faults of configurations with parts, in the file that has them, and that
// the published schemas refuse those of form.
func TestFaultsOfPartsAreReportedWhereTheyAre(t *testing.T) {
	operator, part := newJudge(t, functions.Registry()), schemaOf(t, functions.Registry(), config.PartSchema)
	var out strings.Builder
	all := badParts()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		files := all[name]
		t.Run(name, func(t *testing.T) {
			dir := written(t, files)
			_, err := config.Load([]string{filepath.Join(dir, "operator.yaml")}, functions.Registry())
			faults, is := errors.AsType[source.Faults](err)
			if !is {
				t.Fatalf("Load() = %v, want faults", err)
			}
			fmt.Fprintf(&out, "%s\n", name)
			for i := range faults {
				faults[i].File = filepath.ToSlash(strings.TrimPrefix(faults[i].File, dir+"/"))
				faults[i].Message = strings.ReplaceAll(faults[i].Message, dir+"/", "")
				fmt.Fprintf(&out, "  %s\n", faults[i])
			}
			for file, text := range files {
				of := slices.DeleteFunc(slices.Clone(faults), func(f source.Fault) bool { return f.File != file })
				for _, fault := range compare(expectations(text), of) {
					t.Errorf("%s: %s", file, fault)
				}
				schema := operator.schema
				if file != "operator.yaml" {
					schema = part
					for _, fault := range of {
						if !strings.Contains(fault.Message, "used at ") {
							t.Errorf("a fault of a part does not say where it is used: %s", fault)
						}
					}
				}
				operator.agrees(t, schema, []byte(text), of)
			}
		})
	}
	holdMessages(t, "testdata/messages/parts.txt", out.String())
}

// schemaOf compiles a published schema.
func schemaOf(t *testing.T, registry *actions.Registry, publish func(*actions.Registry) ([]byte, error)) *jsonschema.Schema {
	t.Helper()
	data, err := publish(registry)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestEveryMistakeInAPartIsReportedAsItIs is the same for parts as for operators.
func TestEveryMistakeInAPartIsReportedAsItIs(t *testing.T) {
	data, err := os.ReadFile("testdata/messages/part.yaml")
	if err != nil {
		t.Fatal(err)
	}
	judge := newJudge(t, tuned(t))
	judge.schema = schemaOf(t, judge.registry, config.PartSchema)
	dir := written(t, map[string]string{"operator.yaml": using(user("{file: part.yaml, with: {name: a}}"))})
	judge.read = func(data []byte) error {
		if err := os.WriteFile(filepath.Join(dir, "part.yaml"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load([]string{filepath.Join(dir, "operator.yaml")}, judge.registry)
		faults, is := errors.AsType[source.Faults](err)
		if !is {
			return err
		}
		var out source.Faults
		for _, f := range faults {
			f.Message = strings.ReplaceAll(f.Message, dir+"/", "")
			if f.File, is = strings.CutPrefix(f.File, dir+"/part.yaml"); is { // others follow, as that of an unknown parameter
				out = append(out, f)
			}
		}
		return out
	}
	holdMessages(t, "testdata/messages/part.txt", everyMistake(t, judge, string(data)))
}

// TestAPartIsWhatAHandlerWouldBe compares a handler that uses a part with one that says the same itself.
func TestAPartIsWhatAHandlerWouldBe(t *testing.T) {
	const handler = `      - id: web
        when: has(self.spec.image)
        let: {name: self.spec.image}
`
	const out = `        apply:
          web:
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: "${self.metadata.name}-${self.spec.image}", labels: "${{'a': self.spec.image}}"}
            spec:
              replicas: ${self.spec.replicas}
              selector: {matchLabels: {web: "${self.metadata.name}-${self.spec.image}"}}
              template:
                metadata: {labels: {web: "${self.metadata.name}-${self.spec.image}"}}
                spec: {containers: [{name: web, image: "${self.spec.image}"}]}
`
	const use = `        use:
          file: parts/web.yaml
          with: {name: "${owner}-${name}", image: "${name}", replicas: "${self.spec.replicas}", labels: {a: "${name}"}}
`
	with := written(t, map[string]string{"operator.yaml": using(handler, use), "parts/web.yaml": web})
	got, err := config.Load([]string{with}, handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	want, err := config.Parse("operator.yaml", []byte(using(strings.Replace(handler, "        let: {name: self.spec.image}\n", "", 1), out)), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(knownOf(want), knownOf(got), cmp.AllowUnexported(dsl.View{})); diff != "" {
		t.Errorf("-written out +with a part:\n%s", diff)
	}
	if action := got.Resources()[0].Handlers()[0].Known.Action; action != "use: parts/web.yaml" {
		t.Errorf("people read of it as %q", action)
	}
	files := []string{filepath.Join(with, "operator.yaml"), filepath.Join(with, "parts", "web.yaml")}
	if !slices.Equal(got.Files, files) {
		t.Errorf("its files are %q, want %q", got.Files, files)
	}
}

// TestTheDigestIsOfPartsToo holds that a change of a part is one of the configuration.
func TestTheDigestIsOfPartsToo(t *testing.T) {
	digest := func(part string) string {
		t.Helper()
		op, err := config.Load([]string{written(t, map[string]string{
			"operator.yaml": using(user("{file: web.yaml, with: {name: a}}")), "web.yaml": part,
		})}, handlers.Standard())
		if err != nil {
			t.Fatal(err)
		}
		if len(op.Skipped) > 0 {
			t.Errorf("a part that is used is said to be skipped: %q", op.Skipped)
		}
		return op.Digest
	}
	if digest(web) == digest(strings.Replace(web, "default=nginx", "default=httpd", 1)) {
		t.Error("the digest is the same")
	}
}

// TestPartsAreReadFromAMountedConfigMap has the links of the kubelet, and parts beside and below the configuration.
func TestPartsAreReadFromAMountedConfigMap(t *testing.T) {
	dir := written(t, map[string]string{
		"..1/operator.yaml":  using(user("{file: web.yaml, with: {name: a}}"), "      - id: log\n        use: {file: parts/log.yaml}\n"),
		"..1/web.yaml":       web,
		"..1/parts/log.yaml": note("log: {message: a}"),
		"..1/unused.yaml":    note("log: {message: a}"),
	})
	for name, to := range map[string]string{
		"..data": "..1", "operator.yaml": "..data/operator.yaml", "web.yaml": "..data/web.yaml", "parts": "..data/parts", "unused.yaml": "..data/unused.yaml",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	op, err := config.Load([]string{dir}, handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	if got := len(op.Resources()[0].Handlers()); got != 2 {
		t.Errorf("it has %d handlers", got)
	}
	if want := []string{filepath.Join(dir, "unused.yaml") + ":1:1: Part of handwerk.dev/v1alpha1"}; !slices.Equal(op.Skipped, want) {
		t.Errorf("skipped %q, want %q", op.Skipped, want)
	}
	outside := written(t, map[string]string{"web.yaml": web})
	if err := os.Remove(filepath.Join(dir, "web.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "web.yaml"), filepath.Join(dir, "web.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load([]string{filepath.Join(dir, "operator.yaml")}, handlers.Standard()); err == nil || !strings.Contains(err.Error(), "path escapes from parent") {
		t.Errorf("a link that leads out of the directory gives %v", err)
	}
}

// TestAPartServesEveryPlaceOfAnAction holds where a part can stand, and that it is used several times.
func TestAPartServesEveryPlaceOfAnAction(t *testing.T) {
	const operator = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: everywhere}
startup: [{id: hello, use: {file: log.yaml, with: {text: hello}}}]
resources:
  - resource: shops.v1.example.com
    schema: {kind: Shop, spec: {sites: "[]string"}}
    handlers:
      - {id: one, use: {file: log.yaml, with: {text: one, more: "${self.metadata.?labels.?more}"}}}
      - {id: two, use: {file: log.yaml, with: {text: "${self.metadata.name}"}}}
      - id: sites
        forEach: ${self.spec.?sites.orValue([])}
        use: {file: web.yaml, with: {name: "${item}"}}
      - id: steps
        steps:
          - use: {file: log.yaml, with: {text: three}}
          - log: {message: four}
      - {id: several, use: {file: steps.yaml, with: {text: five}}}
    schedule: [{id: nightly, every: 1h, use: {file: log.yaml, with: {text: "${string(size(objects))}"}}}]
    machine:
      states:
        - {name: On, enter: {use: {file: log.yaml, with: {text: on}}}, terminal: true}
`
	dir := written(t, map[string]string{
		"operator.yaml": operator, "web.yaml": web,
		"log.yaml":   note("parameters: {text: string | required=true, more: string}\nlog: {message: \"${text + (more == null ? '' : more)}\"}"),
		"steps.yaml": note("parameters: {text: string | required=true}\nsteps: [{name: first, use: {file: log.yaml, with: {text: \"${text}!\"}}}, {log: {message: a}}]"),
	})
	op, err := config.Load([]string{dir}, handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, h := range op.Handlers() {
		if h.Machine == nil {
			got[h.ID] = h.Known.Action
		}
	}
	want := map[string]string{
		"one": "use: log.yaml", "two": "use: log.yaml", "sites": "use: web.yaml", "steps": "steps: use, log", "several": "use: steps.yaml", "nightly": "use: log.yaml",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	faults, warnings, err := config.Check(op)
	if err != nil || len(faults)+len(warnings) > 0 {
		t.Errorf("the check finds %v, %v, %v", faults, warnings, err)
	}
	if on := op.Activities(dsl.Startup); len(on) != 1 {
		t.Errorf("there are %d startups", len(on))
	}
}

// TestAParameterThatNoExpressionUsesIsWarnedOf holds the place of the warning.
func TestAParameterThatNoExpressionUsesIsWarnedOf(t *testing.T) {
	dir := written(t, map[string]string{
		"operator.yaml": using(user("{file: a.yaml, with: {text: \"${owner}\"}}")), "a.yaml": note("parameters:\n  text: string\nlog: {message: a}"),
	})
	op, err := config.Load([]string{dir}, handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	_, warnings, err := config.Check(op)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(warnings.Error(), dir+"/", "")
	if want := "a.yaml:4:3: parameters.text: no expression uses this parameter (used at operator.yaml:12:14)"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
