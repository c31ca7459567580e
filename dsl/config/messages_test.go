// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/samples/functions"
)

// TestEveryMessageStaysAsItIs holds what is said of each bad configuration, so that a change of the words
// or of a place is seen in the change that makes it.
func TestEveryMessageStaysAsItIs(t *testing.T) {
	var out strings.Builder
	for _, group := range []struct {
		dir   string
		judge *judge
	}{{"bad", newJudge(t, registry(t))}, {"language", newJudge(t, functions.Registry())}} {
		for _, e := range examples(t, group.dir) {
			fmt.Fprintf(&out, "%s/%s\n%s", group.dir, e.name, group.judge.messages(t, e.data))
		}
	}
	holdMessages(t, "testdata/messages/files.txt", out.String())
}

// TestEveryMistakeIsReportedAsItIs makes each mistake of form at each place of a few whole documents: a key that
// is mistyped or missing, and a value that is of another kind.
func TestEveryMistakeIsReportedAsItIs(t *testing.T) {
	for file, registry := range map[string]*actions.Registry{"good/everything": registry(t), "good/lets": registry(t), "messages/stock": tuned(t)} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile("testdata/" + file + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			out := everyMistake(t, newJudge(t, registry), string(data))
			holdMessages(t, "testdata/messages/"+filepath.Base(file)+".txt", out)
		})
	}
}

// everyMistake makes each mistake in the documents of a text, and returns what the judge says of it.
func everyMistake(t *testing.T, judge *judge, text string) string {
	t.Helper()
	var out strings.Builder
	seen := map[string]bool{}
	for text := range strings.SplitSeq(text, "---\n") {
		root := &yaml.Node{}
		if err := yaml.Unmarshal([]byte(text), root); err != nil {
			t.Fatal(err)
		}
		if said := judge.messages(t, []byte(text)); said != taken {
			t.Fatalf("without a mistake it is not taken:\n%s", said)
		}
		m := &mistaken{said: func() string {
			with, err := yaml.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			return judge.messages(t, with)
		}, seen: seen, out: &out}
		m.below(root.Content[0], "")
	}
	return out.String()
}

// tuned is the standard registry with a function that has parameters of every kind.
func tuned(t *testing.T) *actions.Registry {
	t.Helper()
	r := functions.Registry()
	r.Function(dsl.Function{Name: "demo.Tune", Func: nothing, Params: struct {
		Channel string          `json:"channel"`
		Times   int8            `json:"times"`
		Ratio   float64         `json:"ratio"`
		Loud    *bool           `json:"loud"`
		Wait    metav1.Duration `json:"wait"`
		To      []struct {
			Name string `json:"name"`
		} `json:"to"`
		Extra map[string]float64 `json:"extra"`
		Raw   any                `json:"raw"`
	}{}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return r
}

// taken is what is said of a configuration without a fault.
const taken = "  taken\n"

// messages are the faults of a text, one a line, or that it is taken.
func (j *judge) messages(t *testing.T, data []byte) string {
	t.Helper()
	faults := j.faults(t, data)
	if len(faults) == 0 {
		return taken
	}
	var out strings.Builder
	for _, f := range faults {
		fmt.Fprintf(&out, "  %s\n", strings.TrimPrefix(f.Error(), ":"))
	}
	return out.String()
}

// mistaken makes mistakes in a document, one at a time, and writes down what is said of each.
type mistaken struct {
	said func() string
	// seen are the places that were mistaken in a document before, as its name was.
	seen map[string]bool
	out  *strings.Builder
}

func (m *mistaken) below(n *yaml.Node, place string) {
	for i, value := range n.Content {
		at := fmt.Sprintf("%s[%d]", place, i)
		if n.Kind == yaml.MappingNode {
			key := n.Content[i-i%2]
			at = strings.TrimPrefix(place+"."+key.Value, ".")
		}
		isKey := n.Kind == yaml.MappingNode && i%2 == 0
		switch {
		case m.seen[at]:
		case isKey:
			m.key(n, i, at)
		default:
			m.value(n, i, at)
		}
		if !isKey {
			m.seen[at] = true
			m.below(value, at)
		}
	}
}

func (m *mistaken) key(n *yaml.Node, i int, place string) {
	key, entries := *n.Content[i], n.Content
	n.Content[i].Value += "x"
	fmt.Fprintf(m.out, "%s mistyped\n%s", place, m.said())
	*n.Content[i] = key
	n.Content = slices.Delete(slices.Clone(entries), i, i+2)
	fmt.Fprintf(m.out, "%s missing\n%s", place, m.said())
	n.Content = entries
}

// value puts values of all kinds in place of one. Values with the same message are reported together.
func (m *mistaken) value(n *yaml.Node, i int, place string) {
	value := n.Content[i]
	var said []string
	of := map[string][]string{}
	for _, other := range []string{"7", "zz", `""`, "null", "[zz]", "{zz: 1}"} {
		document := &yaml.Node{}
		if err := yaml.Unmarshal([]byte(other), document); err != nil {
			panic(err)
		}
		n.Content[i] = document.Content[0]
		text := m.said()
		if of[text] == nil {
			said = append(said, text)
		}
		of[text] = append(of[text], other)
	}
	for _, text := range said {
		fmt.Fprintf(m.out, "%s: %s\n%s", place, strings.Join(of[text], " or "), text)
	}
	n.Content[i] = value
}

// holdMessages compares messages with those of a file, or writes them there.
func holdMessages(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("other messages; if they are better, run this test with -update (-want +got):\n%s", diff)
	}
}
