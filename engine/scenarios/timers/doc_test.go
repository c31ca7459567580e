// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package timers_test tests what runs at a time: timers, schedules, and handlers that ask to run again.
package timers_test
