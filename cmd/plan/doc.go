// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan finds out what an operator would do to the objects of a cluster, without writing to it. A twin of the
// cluster has the same objects in memory. The operator runs in the twin, in virtual time, until it rests; the plan is
// the difference between the objects before and after.
package plan
