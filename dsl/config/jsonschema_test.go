// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

var update = flag.Bool("update", false, "write the published schema anew")

func TestThePublishedSchemaIsThatOfTheStandardRegistry(t *testing.T) {
	const file = "../../docs/operator.schema.json"
	got, err := config.Schema(handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not current; run this test with -update", file)
	}
}

func schema(t *testing.T, actions *actions.Registry) *jsonschema.Schema {
	t.Helper()
	data, err := config.Schema(actions)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("operator.json", document); err != nil {
		t.Fatal(err)
	}
	out, err := compiler.Compile("operator.json")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// documents decodes the documents of a file as an editor would.
func documents(t *testing.T, file string) []any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []any
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var document map[string]any
		if decoder.Decode(&document) != nil {
			return out
		}
		if document != nil {
			out = append(out, plain(document))
		}
	}
}

// plain takes out what only YAML has.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = plain(v[key])
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case interface{ Format(string) string }:
		return v.Format("2006-01-02")
	}
	return value
}

func TestTheSchemaAcceptsEveryGoodConfiguration(t *testing.T) {
	schema := schema(t, registry(t))
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no good configurations (%v)", err)
	}
	for _, file := range files {
		for _, document := range documents(t, file) {
			if err := schema.Validate(document); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

func TestTheSchemaRefusesFaultsOfForm(t *testing.T) {
	schema := schema(t, registry(t))
	for _, name := range []string{
		"unknown-field", "unknown-field-at-the-top", "misspelled-required-field", "nothing-required",
		"handler-without-anything", "unknown-cause", "unknown-cache", "unknown-mode", "unknown-policy",
		"two-actions", "no-action", "action-of-the-wrong-kind", "action-with-empty-text", "nulls",
		"empty-lists", "wrong-kinds", "more-wrong-kinds", "booleans-as-text", "wrong-apiversion",
		"other-kind", "wrong-numbers", "numbers-out-of-range", "bad-durations", "leader-without-mode",
		"bad-action-fields", "bad-labels",
	} {
		documents := documents(t, filepath.Join("testdata/bad", name+".yaml"))
		if len(documents) == 0 && name != "bad-action-fields" {
			t.Errorf("%s holds no document", name)
		}
		for _, document := range documents {
			if schema.Validate(document) == nil {
				t.Errorf("the schema accepts %s", name)
			}
		}
	}
}

func TestThePublishedSchemaAcceptsWhatTheStockActionsTake(t *testing.T) {
	schema := schema(t, handlers.Standard())
	files, err := filepath.Glob("../../samples/*/operator.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no samples (%v)", err)
	}
	for _, file := range append(files, "testdata/messages/stock.yaml") {
		for _, document := range documents(t, file) {
			if err := schema.Validate(document); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

func TestThePublishedSchemaRefusesFaultsOfFormInStockActions(t *testing.T) {
	schema := schema(t, handlers.Standard())
	for _, name := range []string{
		"apply-unknown-option", "apply-rollout", "apply-policies", "apply-neither-form", "apply-is-no-map", "apply-incomplete",
		"apply-empty", "apply-in-schedule", "set-in-schedule", "event-in-schedule", "schedule-with-filters", "event-faulty", "event-incomplete", "log-faulty", "steps-empty",
	} {
		documents := documents(t, filepath.Join("testdata/language", name+".yaml"))
		if len(documents) == 0 {
			t.Errorf("%s holds no document", name)
		}
		for _, document := range documents {
			if schema.Validate(document) == nil {
				t.Errorf("the schema accepts %s", name)
			}
		}
	}
}
