// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package growth_test tests that no cost of an operator grows faster than its work: with more handlers, children, namespaces
// and resources each of them costs what it costs with few. HANDWERK_GROWTH=1 takes the sizes of docs/performance.md and prints
// its table.
package growth_test
