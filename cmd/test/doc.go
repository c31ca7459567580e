// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package test runs cases of operators in child processes of the program, and reports what came of them.
package test
