// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package book_test tests what is known of an object across passes, restarts and crashes: the state annotation, the marks of
// earlier versions, and objects that are copied, restored or replaced.
package book_test
