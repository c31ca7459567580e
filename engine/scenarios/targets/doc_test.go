// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package targets_test tests objects that handlers patch without owning them: their record, their field managers, conflicts, and when
// their fields are given back.
package targets_test
