// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"cmp"
	"maps"
	"slices"
)

// refusals are the keys whose requests were rejected for lack of a right, or found no server. The zero value is empty.
// The lock of the inbox guards it.
type refusals struct {
	of map[Key]refusal
	// count numbers the refusals.
	count uint64
}

// refusal has the handlers of a key whose requests were rejected, and the number of the key's first rejection.
type refusal struct {
	who    []string
	number uint64
}

// note records whether a handler's request was rejected, and returns whether that was so before.
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

// drop removes a key.
func (r *refusals) drop(key Key) { delete(r.of, key) }

// take visits all keys in the order of their first rejections, and removes them.
func (r *refusals) take(visit func(key Key, who []string)) {
	keys := slices.SortedFunc(maps.Keys(r.of), func(a, b Key) int { return cmp.Compare(r.of[a].number, r.of[b].number) })
	for _, key := range keys {
		visit(key, r.of[key].who)
	}
	clear(r.of)
}
