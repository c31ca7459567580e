// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package why_test tests the answers to the question why: for each way in which an object can be stuck, the line that says so.
package why_test
