// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package machines_test tests state machines: transitions, time-outs, budgets, deletion, crashes, and metrics.
package machines_test
