// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"strings"
	"testing"
)

// TestVersions holds which steps of what a daemon and others do bring it news. Each step is a word: event, read, send and sent, with
// a version; a step with news ends in "!". At "back" a restored backup has older versions. The daemon has read version 3.
func TestVersions(t *testing.T) {
	for name, steps := range map[string]string{
		"a newer version":                                      "event4!",
		"a version twice":                                      "event4! event4",
		"the version that it has read":                         "event3",
		"an older version":                                     "event2",
		"a version that it has read before its event":          "read4 event4 event5!",
		"an older version that it reads late":                  "read4 read3 event4",
		"a version that cannot be compared":                    "eventodd! event4!",
		"its own write, seen after the answer":                 "send3 sent5 event5 event6!",
		"its own write, seen before the answer":                "send3 event5 sent5",
		"another write before its own, seen during its own":    "send3 event4 sent5",
		"another write after its own, seen before the answer":  "send3 event6 sent5!",
		"another write that the base of its own has already":   "send4! sent5 event4 event5",
		"a write that changes nothing":                         "send3 sent event4!",
		"another write during one that changes nothing":        "send3 event4 sent!",
		"events of an earlier write do not count for the next": "send3 event4 sent! send4 sent6 event5",
		"nor do they after a restored backup":                  "send3 event6 sent5! back send2! sent",
	} {
		t.Run(name, func(t *testing.T) {
			v := versions{known: "3"}
			for step := range strings.FieldsSeq(steps) {
				step, want := strings.TrimSuffix(step, "!"), strings.HasSuffix(step, "!")
				if got := v.step(step); got != want {
					t.Errorf("after %s there is news: %v, want %v", step, got, want)
				}
			}
		})
	}
}

// step makes a step of a test.
func (v *versions) step(step string) (news bool) {
	word := strings.TrimRight(step, "0123456789")
	version := strings.TrimPrefix(step, word)
	switch word {
	case "back":
		v.known = ""
		return false
	case "event":
		return v.event(version)
	case "eventodd":
		return v.event("odd")
	case "read":
		v.read(version)
		return false
	case "send":
		return v.send(version)
	case "sent":
		return v.sent(version)
	}
	panic(fmt.Sprintf("no step is called %q", word))
}

// TestReadOfAnOlderVersion holds which of two reads counts as what the daemon has seen last.
func TestReadOfAnOlderVersion(t *testing.T) {
	v := versions{known: "3"}
	for _, read := range []struct {
		version string
		newest  bool
	}{{"3", true}, {"5", true}, {"4", false}, {"5", true}} {
		if got := v.read(read.version); got != read.newest {
			t.Errorf("version %s is the newest: %v, want %v", read.version, got, read.newest)
		}
	}
}
