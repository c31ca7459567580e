// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package daemons_test tests daemons: when they start and stop, what they read and write, and their back-off.
package daemons_test
