// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/samples/functions"
)

// noting is a registry with an action that does nothing.
func noting() *actions.Registry {
	r := actions.NewRegistry()
	r.Action(actions.Action{
		Name: "note", Doc: "Note something.", Config: func() any { return new(string) },
		Build: func(actions.Build, any) (actions.Built, error) { return actions.Built{Func: nothing}, nil },
	})
	return r
}

// reading is a bench that reads configurations as they are.
func reading(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.load, b.registry = config.Load, noting()
	return b
}

// said is all that a person sees of a command line.
func said(t *testing.T, b *bench, args string) string {
	t.Helper()
	code := b.execute(t.Context(), strings.Fields(args))
	return fmt.Sprintf("$ operator %s\n-- exit %d --\n-- stdout --\n%s-- stderr --\n%s", args, code, b.out.String(), b.err.String())
}

// golden compares what a person sees with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCRDCommand(t *testing.T) {
	for name, args := range map[string]string{
		"yaml":           "crd --config testdata/crd/operator.yaml",
		"json":           "crd --config testdata/crd/operator.yaml -o json",
		"without-any":    "crd --config testdata/operator.yaml",
		"with-faults":    "crd --config testdata/crd/faulty.yaml",
		"help":           "crd --help",
		"without-config": "crd",
	} {
		t.Run(name, func(t *testing.T) { golden(t, "crd/"+name+".golden", said(t, reading(t), args)) })
	}
}

func TestCRDsAreTheSameInBothFormats(t *testing.T) {
	text, object := reading(t), reading(t)
	text.execute(t.Context(), strings.Fields("crd --config testdata/crd/operator.yaml"))
	object.execute(t.Context(), strings.Fields("crd --config testdata/crd/operator.yaml -o json"))
	var list struct{ Items []any }
	if err := json.Unmarshal([]byte(object.out.String()), &list); err != nil {
		t.Fatal(err)
	}
	var documents []any
	for decoder := yaml.NewDecoder(strings.NewReader(text.out.String())); ; {
		var document map[string]any
		if decoder.Decode(&document) != nil {
			break
		}
		documents = append(documents, document)
	}
	// Numbers are of other types in the two.
	if got, want := fmt.Sprint(documents), fmt.Sprint(list.Items); got != want || len(documents) != 2 {
		t.Errorf("as YAML\n%s\nas JSON\n%s", got, want)
	}
}

func TestFaultsShowTheLineTheyAreIn(t *testing.T) {
	tests := map[string]struct {
		line   string
		column int
		want   string
	}{
		"indented":            {"    when: self.spec.x", 21, "  when: self.spec.x\n                  ^\n"},
		"at the beginning":    {"when: x", 1, "  when: x\n  ^\n"},
		"behind wide letters": {`  a: "世界" + x`, 13, "  a: \"世界\" + x\n              ^\n"},
		"behind accents":      {"  a: e\u0301 x", 9, "  a: e\u0301 x\n       ^\n"},
		"behind the end":      {"  a: x", 40, "  a: x\n      ^\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			mark := strings.Repeat(" ", test.column-1) + "^"
			tellFault(tame{Writer: &out}, "", noColor, source.Fault{File: "f", Line: 1, Column: test.column, Message: "m", Excerpt: test.line + "\n" + mark})
			if diff := cmp.Diff(fmt.Sprintf("f:1:%d: m\n", test.column)+test.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSampleCRDsAreThoseOfTheirConfigurations holds that the files are what the command prints.
func TestSampleCRDsAreThoseOfTheirConfigurations(t *testing.T) {
	for _, sample := range []string{"daemon", "ephemeral-volume-claim", "index", "password", "webapp"} {
		b := newBench(t)
		b.load, b.registry = config.Load, functions.Registry()
		if code := b.execute(t.Context(), []string{"crd", "--config", "../samples/" + sample + "/operator.yaml"}); code != 0 {
			t.Fatalf("exit code %d: %s", code, b.err.String())
		}
		want, err := os.ReadFile("../samples/" + sample + "/crd.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.out.String()); diff != "" {
			t.Errorf("samples/%s/crd.yaml is not current (-file +printed):\n%s", sample, diff)
		}
	}
}

// shop is an object that is described in Go.
type shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Title    string `json:"title" schema:"minLength=1 description='What the sign says.'"`
		Replicas int32  `json:"replicas,omitempty" schema:"default=1 minimum=0 maximum=50"`
	} `json:"spec"`
	Status struct {
		Sign string `json:"sign,omitempty"`
	} `json:"status,omitzero"`
}

func TestAProgramPrintsTheCRDOfAGoType(t *testing.T) {
	inGo := func(define func(*dsl.Resource)) []func(*dsl.Operator) {
		return []func(*dsl.Operator){func(op *dsl.Operator) {
			op.Name = "shop"
			op.Resource("shops.v1.example.com", func(shop *dsl.Resource) {
				shop.OnCreate("greet", nothing)
				define(shop)
			})
		}}
	}
	for name, extra := range map[string][]func(*dsl.Operator){
		"go": inGo(func(r *dsl.Resource) {
			crd.Describe[shop](r, func(s *crd.Schema) { s.Kind, s.ShortNames = "Shop", []string{"sh"} })
		}),
		"go-without-any": inGo(func(*dsl.Resource) {}),
		"go-with-faults": inGo(func(r *dsl.Resource) {
			crd.Describe[struct {
				Spec struct {
					Title string `json:"title" schema:"patern='^[A-Z]'"`
				} `json:"spec"`
			}](r, func(s *crd.Schema) { s.Kind = "Shop" })
		}),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.extra = extra
			golden(t, "crd/"+name+".golden", said(t, b, "crd"))
		})
	}
}

// TestASchemaInYAMLServesHandlersInGo holds that the two are one resource, and that the schema alone is a fault with its place.
func TestASchemaInYAMLServesHandlersInGo(t *testing.T) {
	file := writeFile(t, "operator.yaml", `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: shop}
resources:
  - resource: shops.v1.example.com
    schema: {kind: Shop, spec: {title: string}}
`)
	for name, test := range map[string]struct {
		extra []func(*dsl.Operator)
		want  string
	}{
		"with handlers": {
			[]func(*dsl.Operator){func(op *dsl.Operator) {
				op.Resource("shops.v1.example.com", func(shop *dsl.Resource) { shop.OnCreate("greet", nothing) })
			}}, "  name: shops.example.com\n",
		},
		"without": {nil, file + ":5:5: resources[0].handlers: want at least one, here or in Go (none is needed if handlers of another resource read it)\nerror: the configuration has 1 fault\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := reading(t)
			b.extra = test.extra
			code := b.execute(t.Context(), []string{"crd", "--config", file})
			if got := b.out.String() + b.err.String(); !strings.Contains(got, test.want) || (code == exitOK) != (test.extra != nil) {
				t.Errorf("exit code %d\n%s\nwant %s", code, got, test.want)
			}
		})
	}
}
