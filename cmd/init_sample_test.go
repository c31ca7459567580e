// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// carried are samples as a program may carry them.
var carried = fstest.MapFS{
	"first/operator.yaml": {Data: []byte("kind: Operator\n")},
	"first/example.yaml":  {Data: []byte("kind: First\n")},
	"first/parts/a.yaml":  {Data: []byte("kind: Part\n")},
	"second/crd.yaml":     {Data: []byte("kind: Second\n")},
}

func TestInitWritesOutASample(t *testing.T) {
	b := beginner(t)
	b.samples = carried
	if code := b.execute(t.Context(), strings.Fields("init --sample first there")); code != exitOK {
		t.Fatalf("exit code %d: %s", code, b.err.String())
	}
	want := "wrote there/example.yaml\nwrote there/operator.yaml\nwrote there/parts/a.yaml\n\nnext, play with it:\n  operator play --config there --examples\n"
	if diff := cmp.Diff(want, b.out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text, err := os.ReadFile("there/operator.yaml"); string(text) != "kind: Operator\n" {
		t.Errorf("the operator is %q: %v", text, err)
	}
	if code := b.execute(t.Context(), strings.Fields("init --sample first there")); code != exitFailed {
		t.Errorf("the second time it exits with %d", code)
	}
}

func TestASampleThatCannotBeWrittenIsWrongUsage(t *testing.T) {
	tests := map[string]struct{ args, want string }{
		"it is not there":           {"init --sample third", `there is no sample "third" (there are first, second)`},
		"with a part of its own":    {"init --sample first --kind Foo", "--sample writes what there is"},
		"with another kind of init": {"init --sample first --go", "--sample writes what there is"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := beginner(t)
			b.samples = carried
			if code := b.execute(t.Context(), strings.Fields(test.args)); code != exitUsage || !strings.Contains(b.err.String(), test.want) {
				t.Errorf("exit code %d: %s", code, b.err.String())
			}
		})
	}
}

func TestAProgramWithoutSamplesHasNoFlagForThem(t *testing.T) {
	b := beginner(t)
	if code := b.execute(t.Context(), strings.Fields("init --sample first")); code != exitUsage || !strings.Contains(b.err.String(), "unknown flag: --sample") {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
}
