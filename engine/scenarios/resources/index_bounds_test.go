// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnObjectTakesLittleOfAnIndex holds that an object whose author gives it very many keys takes neither memory nor time that
// others need: the index has nothing of it. Others are indexed meanwhile.
func TestAnObjectTakesLittleOfAnIndex(t *testing.T) {
	const long = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	for name, tt := range map[string]struct {
		keys  int
		value string
		says  string
	}{
		"as many keys as there may be": {10_000, "self.metadata.name", ""},
		"a map under many keys":        {9_000, "self.spec", "the values of its 9000 keys take more than 16 MiB"},
		"a text under many keys":       {9_000, "self.spec.long", "the values of its 9000 keys take more than 16 MiB"},
		"more keys than there may be":  {100_000, "self.metadata.name", "it has 100000 keys, and the most is 10000"},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				s := scene.NewStage(t, c)
				op, err := scene.ParseYAML(`{resource: foos.v1.example.com, handlers: [{id: look, when: "'h7' in indexes.hosts", set: {status: {seen: "${indexes.hosts['h7'].size()}"}}}]}], indexes: [
					{name: hosts, resource: foos.v1.example.com, key: self.spec.hosts, value: "` + tt.value + `"}`)
				if err != nil {
					t.Fatal(err)
				}
				s.Operator = op
				var all scene.Texts
				all.Launch(s)
				hosts := make([]any, tt.keys)
				for i := range hosts {
					hosts[i] = fmt.Sprint("h", i)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := worked(t)
				s.Create(scene.FooIn("default", "many", map[string]any{"hosts": hosts, "long": strings.Repeat(long, 2000)}))
				s.Advance(time.Minute)
				runtime.ReadMemStats(&after)
				if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 512 {
					t.Errorf("it takes %d MiB", took)
				}
				if took := worked(t) - began; took > time.Minute {
					t.Errorf("it takes %v of a core", took)
				}
				s.Create(scene.FooIn("default", "one", map[string]any{"hosts": []any{"h7"}, "long": "x"}))
				s.Advance(time.Minute)
				want := int64(2)
				if tt.says != "" {
					want = 1
				}
				if got := scene.ValueAt(s.Get(scene.Foos, "default", "one"), "status.seen"); got != want {
					t.Errorf("under one of the keys there are %v, want %d", got, want)
				}
				if text := all.All(s); !strings.Contains(text, tt.says) {
					t.Errorf("the log does not say %q", tt.says)
				}
			})
		})
	}
}

// worked is how long the cores have worked for the process, which time in a bubble does not show.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano())
}
