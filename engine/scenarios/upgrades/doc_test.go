// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package upgrades_test tests another version of an operator: handlers, fields and children that it has no more, an operator or a handler with
// another name, and objects of earlier releases.
package upgrades_test
