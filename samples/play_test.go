// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples"
	"github.com/handwerk-dev/handwerk/samples/functions"
)

// TestEachSampleCanBePlayed plays each sample with its examples. Those that the program operator carries are written out by it first.
func TestEachSampleCanBePlayed(t *testing.T) {
	folders, err := filepath.Glob("*/operator.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("samples: %v, %v", folders, err)
	}
	for _, file := range folders {
		name := filepath.Dir(file)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, program := name, cmd.Program{Registry: functions.Registry()}
			if _, err := os.Stat(filepath.Join(name, "main.go")); err != nil {
				dir, program = filepath.Join(t.TempDir(), name), cmd.Program{Registry: handlers.Standard(), Samples: samples.Files()}
				said := &playing{}
				if code := program.Run(t.Context(), []string{"init", "--sample", name, "--dir", dir}, cmd.Streams{Out: said, Err: said}); code != 0 {
					t.Fatalf("init: exit code %d\n%s", code, said.text.String())
				}
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			p := &playing{stop: stop, waits: linesOf(t, dir)}
			code := program.Run(ctx, []string{"play", "--config", dir, "--examples"}, cmd.Streams{Out: p, Err: p})
			if code != 0 || len(p.waits) > 0 || strings.Contains(p.text.String(), "creating ") {
				t.Errorf("exit code %d, awaiting %v:\n%s", code, p.waits, p.text.String())
			}
		})
	}
}

// linesOf returns patterns of the lines that a play of a sample has: the operator starts, and the examples are there.
func linesOf(t *testing.T, dir string) []*regexp.Regexp {
	t.Helper()
	out := []*regexp.Regexp{regexp.MustCompile(`operator starts `)}
	examples, err := filepath.Glob(filepath.Join(dir, "example*.yaml"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("the sample has no examples: %v", err)
	}
	for _, file := range examples {
		objects, err := source.Objects(file)
		if err != nil || len(objects) == 0 {
			t.Fatalf("%s has no objects: %v", file, err)
		}
		for _, o := range objects {
			out = append(out, regexp.MustCompile(`\S/`+regexp.QuoteMeta(o.GetName())+` +play +created`))
		}
	}
	return out
}

// playing takes the lines of a play, and stops it when all that are awaited were there.
type playing struct {
	text  bytes.Buffer
	waits []*regexp.Regexp
	stop  func()
}

// Write takes a line.
func (p *playing) Write(line []byte) (int, error) {
	for i, want := range p.waits {
		if want.Match(line) {
			if p.waits = append(p.waits[:i:i], p.waits[i+1:]...); len(p.waits) == 0 {
				p.stop()
			}
			break
		}
	}
	return p.text.Write(line)
}
