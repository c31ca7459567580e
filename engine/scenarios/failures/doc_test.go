// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package failures_test tests handlers that fail: retries and back-off, deadlines, panics, failures for good, loops, and runs that do not end.
package failures_test
