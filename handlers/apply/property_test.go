// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestHoweverRoundsGoTheEndIsTheSame holds that refusals, children that are slow to get ready,
// caches that cannot be read and changes in between leave no trace: when they are over, there is
// what a first clean round makes, and nothing else.
func TestHoweverRoundsGoTheEndIsTheSame(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			config := randomChildren(random)
			w := start(t, config, randomSpec(random))
			for range 2 + random.IntN(8) {
				disturb(w, random)
				_ = w.run(dsl.Update)
				if random.IntN(2) == 0 {
					w.collect()
				}
			}
			last := randomSpec(random)
			settle(t, w, last)
			clean := start(t, config, last)
			if err := clean.run(dsl.Create); err != nil {
				t.Fatalf("%s\na clean round: %v", config, err)
			}
			if diff := cmp.Diff(content(clean), content(w)); diff != "" {
				t.Errorf("%s\nwith %s (-clean +got):\n%s", config, last, diff)
			}
			w.newCalls()
			if err := w.run(dsl.Update); err != nil || len(w.newCalls()) > 0 {
				t.Errorf("another round: %v, %v", err, w.calls)
			}
		})
	}
}

const most = 6

// randomChildren writes children, each of which may need those before it.
func randomChildren(random *rand.Rand) string {
	var out []string
	several := map[int]bool{}
	for i := range 2 + random.IntN(most-1) {
		options, name := fmt.Sprintf("includeWhen: self.spec.on%d", i), fmt.Sprintf("n%d-${self.spec.name%d}", i, i)
		if random.IntN(2) == 0 {
			options += ", readyWhen: child.status.ready"
		}
		if random.IntN(3) == 0 {
			options += ", ownership: labelled"
		}
		if several[i] = random.IntN(3) == 0; several[i] {
			options += fmt.Sprintf(", forEach: '${self.spec.list%d}'", i)
			name += "-${item}"
			if random.IntN(2) == 0 {
				options += ", rollout: {maxUnavailable: 1, readyWhen: child.status.ready}"
			}
		}
		uses := []string{fmt.Sprintf("v: '${self.spec.v%d}'", i)}
		for j := range i {
			switch use := random.IntN(4); {
			case use == 0 && several[j]:
				uses = append(uses, fmt.Sprintf("u%d: '${children.n%d.map(c, c.status.host)}'", j, j))
			case use == 0:
				uses = append(uses, fmt.Sprintf("u%d: '${children.n%d.status.host}'", j, j))
			case use == 1 && !several[j]:
				uses = append(uses, fmt.Sprintf("u%d: \"${children.n%d.?status.?host.orValue('none')}\"", j, j))
			}
		}
		out = append(out, fmt.Sprintf("n%d: {%s, template: {%s{name: '%s'}, spec: {%s}}}", i, options, thing, name, strings.Join(uses, ", ")))
	}
	return "{" + strings.Join(out, ",\n") + "}"
}

func randomSpec(random *rand.Rand) string {
	var out []string
	for i := range most + 1 {
		var list []string
		for _, item := range []string{"p", "q", "r"} {
			if random.IntN(2) == 0 {
				list = append(list, item)
			}
		}
		out = append(out, fmt.Sprintf("on%d: %v, name%d: x%d, v%d: '%d', list%d: [%s]",
			i, random.IntN(4) > 0, i, random.IntN(2), i, random.IntN(2), i, strings.Join(list, ", ")))
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// disturb changes the spec, perhaps, and makes some things fail.
func disturb(w *world, random *rand.Rand) {
	if random.IntN(2) == 0 {
		w.spec(randomSpec(random))
	}
	w.refused, w.slow, w.allErr = map[string]error{}, map[string]bool{}, nil
	for i := range most {
		for _, tail := range []string{"", "-p", "-q", "-r"} {
			name := fmt.Sprintf("Thing n%d-x%d%s", i, random.IntN(2), tail)
			if random.IntN(5) == 0 {
				w.refused[name] = errBroken
			}
			w.slow[name] = random.IntN(4) == 0
		}
	}
	if random.IntN(6) == 0 {
		w.allErr = errBroken
	}
}

// settle runs until everything is as the spec says.
func settle(t *testing.T, w *world, spec string) {
	t.Helper()
	w.refused, w.slow, w.allErr = map[string]error{}, map[string]bool{}, nil
	w.spec(spec)
	var err error
	for range 40 {
		w.collect()
		if err = w.run(dsl.Update); err == nil {
			return
		}
		if _, waits := dsl.IsWaiting(err); !waits {
			break
		}
	}
	t.Fatalf("it does not come to an end: %v", err)
}

// content is what was made of each object.
func content(w *world) map[string]any {
	out := map[string]any{}
	for name, r := range w.objects {
		out[name] = []any{r.made, r.spec}
	}
	return out
}
