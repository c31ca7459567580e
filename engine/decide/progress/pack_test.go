// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func TestPack(t *testing.T) {
	const allAlike = "as much as may be, all alike"
	random := make([]byte, Most)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	for name, data := range map[string][]byte{
		"nothing": {}, "text": []byte(`{"a":"b"}`), allAlike: make([]byte, Most), "as much as may be, without any order": random,
	} {
		text, err := Pack(data)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Unpack(text); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s comes back as %d bytes, %v", name, len(got), err)
		}
		if most := max(2*From, len(data)/ratio+From); name == allAlike && len(text) > most {
			t.Errorf("%s takes %d bytes, and could take %d", name, len(text), most)
		}
	}
	if _, err := Pack(make([]byte, Most+1)); !errors.Is(err, ErrLarge) {
		t.Errorf("a byte too many is packed: %v", err)
	}
}

// TestUnpackRefuses holds that neither a large text nor one that unpacks to many times its size costs more than it is worth.
func TestUnpackRefuses(t *testing.T) {
	for name, size := range map[string]int{"a byte too many": Most + 1, "a bomb": 1 << 20} {
		text, err := deflate(make([]byte, size), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Unpack(text); !errors.Is(err, ErrLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"what is no text of bytes": "%%%", "what is cut": "AAAA"} {
		if _, err := Unpack(text); err == nil {
			t.Errorf("%s is unpacked", name)
		}
	}
}

// wholes are JSON texts of many values that are small as text.
func wholes() map[string]string {
	many := func(open, one, end string) string { return open + strings.Repeat(one+",", 20000) + one + end }
	maps := make([]string, 20000)
	for i := range maps {
		maps[i] = strconv.Quote(strconv.Itoa(i)) + ":0"
	}
	return map[string]string{
		"empty maps": many("[", "{}", "]"), "empty lists": many("[", "[]", "]"), "maps of one": many("[", `{"a":1}`, "]"),
		"maps in maps": strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), "lists in lists": strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"large numbers": many("[", "12345", "]"), "small numbers": many("[", "1", "]"), "short texts": many("[", `"ab"`, "]"),
		"a map of many": "{" + strings.Join(maps, ",") + "}", "one text": `"` + strings.Repeat("{,", 100000) + `"`,
	}
}

// TestWeight holds that a text takes no more than twice what it weighs, and not much less than a tenth.
func TestWeight(t *testing.T) {
	for name, text := range wholes() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			data := []byte(text)
			runtime.GC()
			runtime.ReadMemStats(&before)
			var value any
			if err := json.Unmarshal(data, &value); err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			took, weight, decoded := int(after.HeapAlloc)-int(before.HeapAlloc), Weight(data), WeightOf(value)
			if took > 2*weight || weight > 10*took+len(data) {
				t.Errorf("it weighs %d and takes %d", weight, took)
			}
			if decoded > weight || 4*decoded < weight-len(data) {
				t.Errorf("it weighs %d, and decoded %d", weight, decoded)
			}
			runtime.KeepAlive(value)
		})
	}
}

// FuzzUnpack holds that whatever is unpacked is in proportion to its text, and is what comes back when it is packed again.
func FuzzUnpack(f *testing.F) {
	for _, text := range wholes() {
		packed, err := deflate([]byte(text), 0)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		data, err := Unpack(text)
		if err != nil {
			return
		}
		if len(data) > limit(text) {
			t.Fatalf("%d bytes of text are %d bytes of data", len(text), len(data))
		}
		again, err := Pack(data)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Unpack(again); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes come back as %d, %v", len(data), len(got), err)
		}
		if weight := Weight(data); weight < len(data) {
			t.Fatalf("%d bytes weigh %d", len(data), weight)
		}
	})
}
