// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package status_test tests what is written to an object's status: conditions, Ready, results, and what handlers see of each other's status.
package status_test
