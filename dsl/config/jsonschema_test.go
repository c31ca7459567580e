// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

var update = flag.Bool("update", false, "write the published schema again")

func TestThePublishedSchemaIsThatOfTheStandardRegistry(t *testing.T) {
	for file, schema := range map[string]func(*actions.Registry) ([]byte, error){"operator": config.Schema, "part": config.PartSchema} {
		file = "../../docs/" + file + ".schema.json"
		got, err := schema(handlers.Standard())
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
}
