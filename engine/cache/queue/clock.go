// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"k8s.io/utils/clock"
)

// noBeat is the real clock, without tickers. client-go's queue checks every ten seconds whether a delay is over, beside
// its timer for the first delay. Each queue of an operator would wake up for that, and in virtual time days are many
// ticks.
type noBeat struct{ clock.RealClock }

// NewTicker returns a ticker that never ticks.
func (noBeat) NewTicker(time.Duration) clock.Ticker { return still{} }

// still is a ticker that never ticks.
type still struct{}

// C returns a channel that never receives.
func (still) C() <-chan time.Time { return nil }

// Stop does nothing.
func (still) Stop() {}
