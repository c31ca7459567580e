// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package cluster

// raced says whether this binary was built with the race detector; the operator is then, too.
const raced = true
