// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package handlers_test tests what code of handlers works with: sub-handlers, steps, entries of forEach, typed objects, the client, memos,
// activities, and waiting for others.
package handlers_test
