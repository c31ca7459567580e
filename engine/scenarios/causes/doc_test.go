// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package causes_test tests which handlers run for which change: causes, views, filters, and what handlers see of changes that come early, late
// or in the middle of a reconcile.
package causes_test
