// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package children_test tests objects that handlers apply: owner references and labels, the inventory of children, adoption,
// collisions of handlers, when and includeWhen, and what becomes of children that are lost, changed or not wanted.
package children_test
