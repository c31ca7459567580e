// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"strconv"
	"sync"
)

// versions has the versions of the objects of each kind that the caches have taken in.
type versions struct {
	mu      sync.Mutex
	reached map[string]int64
	// changed is closed at the next progress; nil if nobody waits for that.
	changed chan struct{}
}

// reach notes that a kind is current up to a version.
func (v *versions) reach(kind, version string) {
	n, err := strconv.ParseInt(version, 10, 64)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil || n <= v.reached[kind] {
		return
	}
	v.reached[kind] = n
	if v.changed != nil {
		close(v.changed)
		v.changed = nil
	}
}

// wait returns when a kind is current up to a version.
func (v *versions) wait(ctx context.Context, ended <-chan struct{}, kind string, version int64) error {
	for {
		changed := v.behind(kind, version)
		if changed == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ended:
			return ErrEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// behind returns a channel that is closed at the next progress; nil if a kind is current up to a version.
func (v *versions) behind(kind string, version int64) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reached[kind] >= version {
		return nil
	}
	if v.changed == nil {
		v.changed = make(chan struct{})
	}
	return v.changed
}
