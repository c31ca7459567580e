// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

var (
	edits = flag.Int("edits", 20, "the number of random edits of samples that are planned and made")
	seed  = flag.Uint64("seed", 1, "the seed of the random edits")
	steps = flag.Int("steps", 1, "the number of random changes that make an edit")
)

// TestAPlanOfARandomEditIsWhatHappens changes the configurations of the samples at random. Run it with -edits and -seed for
// other edits than those of each day.
func TestAPlanOfARandomEditIsWhatHappens(t *testing.T) {
	all := samples()
	for i := range *edits {
		s := all[i%len(all)]
		t.Run(fmt.Sprintf("%d %s", i, s.name), func(t *testing.T) {
			t.Parallel()
			before := s.read(t)
			after, change := before, ""
			for g := (generator{rand.New(rand.NewPCG(*seed, uint64(i)))}); strings.Count(change, "\n") < *steps; {
				var step string
				after, step = randomEdit(t, g, after)
				change += step + "\n"
			}
			t.Log(change)
			diff, warnings := newLife(t, s, fmt.Sprintf("%s-r%d", s.name, i), before, after).compare()
			if len(warnings) > 0 {
				t.Logf("warnings: %q", warnings)
			}
			if diff != "" {
				t.Errorf("%s(-happened +planned):\n%s", change, diff)
			}
		})
	}
}

// randomEdit returns a version with one random change that loads, and describes the change.
func randomEdit(t *testing.T, g generator, before version) (version, string) {
	t.Helper()
	files := slices.Sorted(maps.Keys(before))
	for range 1000 {
		file := files[g.IntN(len(files))]
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(before[file]), &document); err != nil {
			t.Fatal(err)
		}
		change := g.edit(document.Content[0])
		if change == "" {
			continue
		}
		text, err := yaml.Marshal(&document)
		if err != nil {
			t.Fatal(err)
		}
		after := maps.Clone(before)
		after[file] = string(text)
		if _, err := config.Load([]string{after.write(t) + "/" + operatorFile}, handlers.Standard()); err == nil {
			return after, file + ": " + change
		}
	}
	t.Fatal("no random edit loads")
	return nil, ""
}
