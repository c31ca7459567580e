// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package prune finds and deletes children that no handler makes. A [Register] keeps the kinds of the operator's
// children in a ConfigMap, by the resource of their owners. [Retired] watches the kinds that the configuration no longer
// declares, until none of their children is left. A [Pruner] selects the children of an object that are deleted.
package prune
