// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import "hash/maphash"

// The functions below are the steps of [Hash], for values that are read from text and for which no tree is built.

// HashText is Hash for a string.
func HashText(text []byte) uint64 { return maphash.Bytes(seed, text) }

// HashInt is Hash for an integer.
func HashInt(n int64) uint64 { return ofNumber('i', uint64(n)) }

// HashList begins the hash of a list with so many items, and HashItem adds the hash of the next one.
func HashList(items int) uint64 { return ofNumber('[', uint64(items)) }

// HashItem adds the hash of the next item to that of a list.
func HashItem(list, item uint64) uint64 { return ofPair(list, item) }

// HashMap is the hash of a map with so many members, and the sum of their hashes.
func HashMap(members int, sum uint64) uint64 { return ofNumber('{', uint64(members)) + sum }

// HashMember is the hash of a member of a map.
func HashMember(key []byte, value uint64) uint64 { return ofPair(HashText(key), value) }
