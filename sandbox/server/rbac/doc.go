// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbac decides by roles and bindings which requests a user may send. It is pure.
package rbac
