// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAQueueHasNoBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beat := noBeat{}.NewTicker(time.Second)
		defer beat.Stop()
		select {
		case <-beat.C():
			t.Errorf("it ticks")
		case <-time.After(time.Hour):
		}
	})
}
