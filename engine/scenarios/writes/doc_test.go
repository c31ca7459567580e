// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package writes_test tests the requests that an operator sends: how many there are, that they overwrite nothing of others, conflicts, refused
// patches, transformations, and that no reconcile starts from a cache older than the operator's own writes.
package writes_test
