// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/action"
)

// TestTheChartIsClean runs helm lint --strict, with the values of the chart, those of an operator, and those whose objects are
// known.
func TestTheChartIsClean(t *testing.T) {
	tests := map[string]map[string]any{"its own values": {}, "the values of a sample": valuesOf(t, repository+"/samples/foo/operator.yaml")}
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d files of values (%v)", len(files), err)
	}
	for _, file := range files {
		tests[filepath.Base(file)] = parse(t, read(t, file))
	}
	for name, values := range tests {
		t.Run(name, func(t *testing.T) {
			lint := action.NewLint()
			lint.Strict, lint.Namespace = true, "ops"
			result := lint.Run([]string{chartDir}, values)
			for _, message := range result.Messages {
				if !strings.Contains(message.Err.Error(), "icon is recommended") {
					t.Error(message)
				}
			}
			if result.TotalChartsLinted != 1 {
				t.Errorf("linted %d charts: %v", result.TotalChartsLinted, result.Errors)
			}
		})
	}
}

// TestEachValueIsExplained holds that values.yaml and values.schema.json have the same values, that both explain each in the same
// words, and that the schema takes no others.
func TestEachValueIsExplained(t *testing.T) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(read(t, chartDir+"/values.yaml")), &document); err != nil {
		t.Fatal(err)
	}
	var root described
	if err := json.Unmarshal([]byte(read(t, chartDir+"/values.schema.json")), &root); err != nil {
		t.Fatal(err)
	}
	compare(t, "values", document.Content[0], &root)
}

// described is what the test reads of a schema.
type described struct {
	Description          string
	Properties           map[string]*described
	AdditionalProperties any
}

func compare(t *testing.T, path string, values *yaml.Node, s *described) {
	t.Helper()
	if s.AdditionalProperties != false {
		t.Errorf("%s takes values that it does not have", path)
	}
	var keys []string
	for i := 0; i < len(values.Content); i += 2 {
		key, value := values.Content[i], values.Content[i+1]
		keys = append(keys, key.Value)
		entry := s.Properties[key.Value]
		if entry == nil {
			continue // the comparison of keys says it
		}
		said := strings.Join(strings.Fields(strings.ReplaceAll("\n"+key.HeadComment, "\n#", "\n")), " ")
		if diff := cmp.Diff(said, entry.Description); diff != "" || said == "" {
			t.Errorf("%s.%s is explained by (-values.yaml +schema):\n%s", path, key.Value, diff)
		}
		if entry.Properties != nil && value.Style&yaml.FlowStyle == 0 && path+key.Value != "valuesresources" {
			compare(t, path+"."+key.Value, value, entry)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(keys)), slices.Sorted(maps.Keys(s.Properties))); diff != "" {
		t.Errorf("%s has (-values.yaml +schema):\n%s", path, diff)
	}
}
