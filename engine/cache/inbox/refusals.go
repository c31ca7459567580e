// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"cmp"
	"maps"
	"slices"
)

// refusals are the keys for which a right was missing, or the server, with those who lacked it. The zero value is empty. The lock of
// the box guards it.
type refusals struct {
	of map[Key]refusal
	// count numbers the refusals.
	count uint64
}

// refusal has the handlers of a key whose requests were refused, and the number of the key's first refusal.
type refusal struct {
	who    []string
	number uint64
}

// note notes whether somebody was refused, and returns whether that was so before.
func (r *refusals) note(key Key, who string, refused bool) (before bool) {
	known, found := r.of[key]
	at := slices.Index(known.who, who)
	switch {
	case refused && at < 0:
		if !found {
			r.count++
			known.number = r.count
		}
		known.who = append(known.who, who)
	case !refused && at >= 0:
		known.who = slices.Delete(known.who, at, at+1)
	default:
		return at >= 0
	}
	if len(known.who) == 0 {
		delete(r.of, key)
		return true
	}
	if r.of == nil {
		r.of = map[Key]refusal{}
	}
	r.of[key] = known
	return at >= 0
}

// drop forgets a key.
func (r *refusals) drop(key Key) { delete(r.of, key) }

// take visits all, those first that were refused first, and forgets them.
func (r *refusals) take(visit func(key Key, who []string)) {
	keys := slices.SortedFunc(maps.Keys(r.of), func(a, b Key) int { return cmp.Compare(r.of[a].number, r.of[b].number) })
	for _, key := range keys {
		visit(key, r.of[key].who)
	}
	clear(r.of)
}
