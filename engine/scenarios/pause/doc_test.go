// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package pause_test tests what an operator leaves alone while somebody has paused it, and how it goes on afterwards.
package pause_test
