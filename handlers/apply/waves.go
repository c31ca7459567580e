// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/handlers/graph"
)

// remover takes existing children away, in the opposite order of their dependencies.
type remover struct {
	children dsl.Children
	graph    *graph.Graph
	// deletion: the owner is being deleted, so no other handler wants its children.
	deletion bool
}

// removeAll takes children away in waves: children that depend on others go first, and each wave must be gone before
// the next.
func (r remover) removeAll(ctx context.Context, left []dsl.ChildObject) (out result) {
	for len(left) > 0 && out.quiet() && ctx.Err() == nil {
		wave, rest := nextWave(r.graph, left)
		part, stays := r.remove(ctx, wave)
		out.add(part)
		if stays {
			break
		}
		left = rest
	}
	return out
}

// remove takes the children of a wave away, several in parallel. It only waits for those that are being deleted
// already. It reports whether some stay because another handler may want them; the engine then runs this handler
// again.
func (r remover) remove(ctx context.Context, wave []dsl.ChildObject) (out result, stays bool) {
	errs := make([]error, len(wave))
	indexes := make([]int, len(wave))
	for i := range indexes {
		indexes[i] = i
	}
	each(ctx, indexes, func(i int) {
		if wave[i].OnDelete == dsl.OrphanChild || wave[i].Object.GetDeletionTimestamp() == nil {
			errs[i] = r.children.Remove(ctx, wave[i])
		}
	})
	living := r.living()
	for i, found := range wave {
		switch {
		case errs[i] != nil:
			out.fail(labelOf(found.Object), errs[i])
		case living[objectOf(found)]:
			stays = true
		case found.OnDelete != dsl.OrphanChild:
			out.wait(0, "%s to be gone%s", labelOf(found.Object), holders(found.Object))
		}
	}
	return out, stays
}

// living returns the children that are not being deleted. At a deletion there are none.
func (r remover) living() map[string]bool {
	out := map[string]bool{}
	all, err := r.children.All()
	if err != nil || r.deletion {
		return out
	}
	for _, found := range all {
		if found.Object.GetDeletionTimestamp() == nil {
			out[objectOf(found)] = true
		}
	}
	return out
}

// objectOf returns a key that identifies an object.
func objectOf(found dsl.ChildObject) string {
	return string(found.Object.GetUID()) + " " + labelOf(found.Object)
}

// nextWave splits children into the next wave and the rest. Children whose names are not in the configuration any
// more go first, the youngest name before the others, because their dependencies are not known. Then come those that
// no other child depends on.
func nextWave(of *graph.Graph, left []dsl.ChildObject) (wave, rest []dsl.ChildObject) {
	born := map[string]time.Time{}
	var known []string
	for _, found := range left {
		if of.Has(found.Name) {
			known = append(known, found.Name)
			continue
		}
		at := found.Object.GetCreationTimestamp().Time
		if first, seen := born[found.Name]; !seen || at.Before(first) {
			born[found.Name] = at
		}
	}
	next := of.Last(known)
	if len(born) > 0 {
		next = youngest(born)
	}
	for _, found := range left {
		if slices.Contains(next, found.Name) {
			wave = append(wave, found)
		} else {
			rest = append(rest, found)
		}
	}
	return wave, rest
}

// youngest returns the names with the latest time.
func youngest(born map[string]time.Time) (out []string) {
	var latest time.Time
	for name, at := range born {
		switch {
		case len(out) == 0 || at.After(latest):
			out, latest = []string{name}, at
		case at.Equal(latest):
			out = append(out, name)
		}
	}
	return out
}
