// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package book_test tests what is known of an object across passes, restarts and crashes: the state annotation, status.observedGeneration,
// and objects that are copied, restored or replaced.
package book_test
