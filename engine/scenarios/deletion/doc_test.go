// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package deletion_test tests what happens to objects that are deleted or leave the selector: finalizers, delete handlers, and children.
package deletion_test
