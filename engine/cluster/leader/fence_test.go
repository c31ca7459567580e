// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"testing"
	"time"
	"unsafe"
)

// The clocks of a moment in the past: the wall clock may have been set since, and the monotonic
// clock stands still while the machine is suspended.
func moment(wall, monotonic time.Duration) time.Time {
	t := time.Now().Add(-wall)
	// The second word of a time holds its monotonic clock.
	(*[2]int64)(unsafe.Pointer(&t))[1] += int64(wall - monotonic)
	return t
}

func (p *process) renewed() time.Time {
	p.fence.mu.Lock()
	defer p.fence.mu.Unlock()
	return p.fence.renewed
}

func TestFence(t *testing.T) {
	tests := map[string]struct {
		wall, monotonic time.Duration // since the last renewal
		closed          bool
		want            bool
	}{
		"just renewed":                             {want: true},
		"renewed a while ago":                      {wall: 9 * time.Second, monotonic: 9 * time.Second, want: true},
		"renewed too long ago":                     {wall: 10 * time.Second, monotonic: 10 * time.Second},
		"the process was stopped":                  {wall: time.Hour, monotonic: time.Hour},
		"the machine was suspended":                {wall: time.Hour, monotonic: time.Second},
		"stopped, and the wall clock was set back": {wall: -time.Hour, monotonic: time.Hour},
		"the wall clock was set back a little":     {wall: -time.Second, monotonic: time.Second, want: true},
		"no term":                                  {closed: true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			f := fence{limit: 10 * time.Second}
			f.start()
			f.renew(moment(test.wall, test.monotonic))
			if test.closed {
				f.stop()
			}
			if got := f.held(); got != test.want {
				t.Errorf("held is %v, want %v", got, test.want)
			}
		})
	}
}

func TestMomentHasTwoClocks(t *testing.T) {
	m, now := moment(time.Hour, time.Minute), time.Now()
	if by := now.Sub(m).Round(time.Second); by != time.Minute {
		t.Errorf("by the monotonic clock %v, want a minute", by)
	}
	if by := now.Round(0).Sub(m.Round(0)).Round(time.Second); by != time.Hour {
		t.Errorf("by the wall clock %v, want an hour", by)
	}
}

func TestFenceReportsTheEndOfATermOnce(t *testing.T) {
	f := fence{limit: time.Second}
	if f.stop() {
		t.Error("a term ended that never began")
	}
	shut := f.start()
	if !f.stop() || f.stop() {
		t.Error("the end of the term was not reported exactly once")
	}
	select {
	case <-shut:
	default:
		t.Error("the channel was not closed")
	}
}
