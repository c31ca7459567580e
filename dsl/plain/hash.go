// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"encoding/binary"
	"encoding/json"
	"hash/maphash"
	"math"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// seed differs between processes, so that results of Hash are not stored.
var seed = maphash.MakeSeed()

// Hash returns a hash of a value for the life of the process. Values with the same JSON have the same hash,
// whatever the order of their keys. The error is that of encoding/json for a value that cannot be JSON.
func Hash(value any) (uint64, error) {
	switch v := value.(type) {
	case nil:
		return ofNumber('0', 0), nil
	case bool:
		if v {
			return ofNumber('b', 1), nil
		}
		return ofNumber('b', 0), nil
	case int64:
		return ofNumber('i', uint64(v)), nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 { // beyond this, a float does not have all digits
			return ofNumber('i', uint64(int64(v))), nil
		}
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return ofNumber('n', math.Float64bits(v)), nil
		}
	case string:
		return maphash.String(seed, v), nil
	case []any:
		if v != nil {
			return ofList(v)
		}
	case map[string]any:
		if v != nil {
			return ofMap(v)
		}
	}
	return ofTyped(value)
}

// ofTyped is Hash for other types, by way of JSON.
func ofTyped(value any) (uint64, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return 0, err
	}
	var bare any
	if err := utiljson.Unmarshal(data, &bare); err != nil {
		return 0, err
	}
	return Hash(bare)
}

func ofList(list []any) (uint64, error) {
	sum := ofNumber('[', uint64(len(list)))
	for _, item := range list {
		h, err := Hash(item)
		if err != nil {
			return 0, err
		}
		sum = ofPair(sum, h)
	}
	return sum, nil
}

// ofMap adds the hashes of members, because their order must not matter.
func ofMap(m map[string]any) (uint64, error) {
	sum := ofNumber('{', uint64(len(m)))
	for key, value := range m {
		h, err := Hash(value)
		if err != nil {
			return 0, err
		}
		sum += ofPair(maphash.String(seed, key), h)
	}
	return sum, nil
}

func ofPair(a, b uint64) uint64 {
	var both [16]byte
	binary.LittleEndian.PutUint64(both[:], a)
	binary.LittleEndian.PutUint64(both[8:], b)
	return maphash.Bytes(seed, both[:])
}

func ofNumber(kind byte, n uint64) uint64 { return ofPair(uint64(kind), n) }
