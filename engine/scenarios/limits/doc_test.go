// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package limits_test holds that an operator does not delete more at once than its limits allow, and that nothing is lost
// by that.
package limits_test
