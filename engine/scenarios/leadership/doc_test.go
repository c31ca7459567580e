// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package leadership_test tests that one process of an operator works: election, takeover, and the loss of leadership.
package leadership_test
