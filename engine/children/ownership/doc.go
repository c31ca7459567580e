// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package ownership decides which objects are an owner's children: by an owner reference, or by a label that the
// owner's inventory confirms. It writes these ties into templates, and reads and writes the inventory. It is pure.
package ownership
