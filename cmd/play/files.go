// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

// pace is the time between two looks at the files. Notifications of the kernel would be sooner, but editors replace
// files, ConfigMaps are links that move, and network file systems notify of nothing.
const pace = 40 * time.Millisecond

// files are the files of a configuration, and those beside it.
type files struct {
	paths []string
	// parts are the files of the parts that they use, as of the last change. They may be in other directories.
	parts []string
	// seen are the files as they were when they were looked at for the last time.
	seen map[string]fs.FileInfo
}

// same reports whether two looks at a file show no change. A file may be replaced by one of the same size and time, and one
// that could not be read has another mode when it can.
func same(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode() && os.SameFile(a, b)
}

// newFiles returns the files of a configuration and those in their directories, or those in a directory.
func newFiles(paths []string, beside string) *files {
	if len(paths) == 0 && beside != "" {
		paths = []string{beside}
	}
	f := &files{paths: paths}
	f.note(f.look())
	return f
}

// note keeps the files as a look has shown them, so that the next look finds later changes. It looks only at parts that
// were not used before.
func (f *files) note(look map[string]fs.FileInfo) {
	before := f.parts
	f.parts = source.Parts(f.names())
	watched := slices.Concat(f.names(), f.parts)
	for _, name := range before {
		if !slices.Contains(watched, name) {
			delete(look, name)
		}
	}
	for _, name := range f.parts {
		if info, err := os.Stat(name); err == nil && look[name] == nil && !slices.Contains(before, name) {
			look[name] = info
		}
	}
	f.seen = look
}

// watch returns a channel with the names of files that have changed, come or gone, until ctx ends. Files are named
// when none of them has changed for a moment: who writes a file often does so in two steps.
func (f *files) watch(ctx context.Context) <-chan []string {
	out := make(chan []string)
	go func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		last := f.seen
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := f.look()
			settled := maps.EqualFunc(now, last, same)
			if last = now; !settled || maps.EqualFunc(now, f.seen, same) {
				continue
			}
			names := differing(f.seen, now)
			f.note(now) // a change may use other parts
			last = f.seen
			select {
			case <-ctx.Done():
			case out <- names:
			}
		}
	}()
	return out
}

// differing returns the names of files that differ, in order.
func differing(before, now map[string]fs.FileInfo) []string {
	names := map[string]bool{}
	for name, info := range now {
		if was, there := before[name]; !there || !same(was, info) {
			names[name] = true
		}
	}
	for name := range before {
		if _, there := now[name]; !there {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// look returns the present state of the files. What cannot be read is left out; loading says why.
func (f *files) look() map[string]fs.FileInfo {
	out := map[string]fs.FileInfo{}
	for _, name := range slices.Concat(f.names(), f.parts) {
		if info, err := os.Stat(name); err == nil {
			out[name] = info
		}
	}
	return out
}

// names returns the YAML files of the paths, and those beside them.
func (f *files) names() []string { return source.Beside(f.paths) }
