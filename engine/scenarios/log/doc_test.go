// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package log_test tests what people read: lines of the log, Events, /readyz?verbose, and that each failure is logged once with its end.
package log_test
