// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package prune finds and deletes children that no handler makes any more. A [Register] keeps in a ConfigMap of which kinds the
// operator has made children, by the resource of their owners. [Retired] brings in the kinds that a later version does not make,
// until no child of them is left. A [Sweeper] chooses which children of an object are deleted.
package prune
