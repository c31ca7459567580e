// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

// TestABooleanIsOneOfKubectl compares what is said of words with what kubectl's own reader makes of them.
func TestABooleanIsOneOfKubectl(t *testing.T) {
	for word := range strings.FieldsSeq("y Y yes Yes YES on On ON n N no No NO off Off OFF yEs oN true True false x ye yess 1 0 ~ null 'yes' \"off\"") {
		var theirs any
		if err := kyaml.Unmarshal([]byte(word), &theirs); err != nil {
			t.Fatal(err)
		}
		var ours yaml.Node
		if err := yaml.Unmarshal([]byte(word), &ours); err != nil {
			t.Fatal(err)
		}
		var text any
		if err := ours.Decode(&text); err != nil {
			t.Fatal(err)
		}
		want, boolean := theirs.(bool)
		_, same := text.(bool)
		if value, is := source.Boolean(ours.Content[0]); is != (boolean && !same) || is && value != want {
			t.Errorf("%s: %v %v; kubectl reads %v", word, value, is, theirs)
		}
	}
}

func TestAdviceNamesTheWordsThatAreBooleans(t *testing.T) {
	refused := errors.New("cannot unmarshal bool into a string")
	for name, c := range map[string]struct {
		text string
		err  error
		want string
	}{
		"one":             {"kind: A\n---\nlabels:\n  a: yes", refused, "; in YAML of Kubernetes a word without quotes is a boolean: yes in line 4 is true"},
		"several":         {"a: {on: 'yes', b: off}\nc: [no, n, y]", refused, "; in YAML of Kubernetes a word without quotes is a boolean: on in line 1 is true, off in line 1 is false, no in line 2 is false, …"},
		"none":            {"a: 'yes'", refused, ""},
		"another mistake": {"a: yes", errors.New("forbidden"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "a.yaml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := source.BooleanAdvice(file, c.err); got != c.want {
				t.Errorf("the advice is %q, want %q", got, c.want)
			}
		})
	}
}
