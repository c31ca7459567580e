// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package limits decides which deletions an operator may begin now, and which wait. It is pure.
//
// A deletion asks before it begins. It waits for its turn if as many as the limit allows have begun in the last minute.
// It is held if too large a share of the objects of its kind is to be deleted at the same time. Deletions count toward
// the share if they wait, or have begun in the last minute; each new object makes up for one. While a deletion waits,
// deletions that had begun count for longer than a minute.
//
// A waiting deletion asks again from time to time. If it does not, nobody wants it any longer, and it does not count. So
// the limit lets deletions go by itself once the mistake that asked for the others is taken back.
package limits
