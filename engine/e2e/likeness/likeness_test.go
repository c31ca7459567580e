// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/rand"
)

// prefix is the beginning of the names of all rows' namespaces.
const prefix = "likeness-"

// TestServerDoesAsARealOneDoes sends the requests of each row to the real API server and to the one in memory, and
// compares the answers.
func TestServerDoesAsARealOneDoes(t *testing.T) {
	rows, run := read(t), rand.String(4)
	real, memory := realServer(t), inMemory(t)
	t.Run("rows", func(t *testing.T) {
		for _, r := range rows {
			t.Run(r.topic+"/"+r.Name, func(t *testing.T) {
				t.Parallel()
				namespace := fmt.Sprintf("%s%s-%03d", prefix, run, r.number)
				want, got := newSession(t, real, namespace).play(r), newSession(t, memory, namespace).play(r)
				diff := difference(want, got)
				switch {
				case diff != "" && r.Differs == "":
					t.Errorf("the answers (-real +in memory):\n%s", diff)
				case diff == "" && r.Differs != "":
					t.Errorf("the answers are alike, but the row has a reason why they differ: %s", r.Differs)
				}
			})
		}
	})
}

// difference returns the lines in which the answers of two servers differ. It is empty for equal answers.
func difference(real, memory []answer) string {
	var out strings.Builder
	for i := range real {
		if diff := cmp.Diff(real[i].lines(), memory[i].lines()); diff != "" {
			fmt.Fprintf(&out, "%d. %s\n%s", i+1, real[i].Step, diff)
		}
	}
	return out.String()
}
