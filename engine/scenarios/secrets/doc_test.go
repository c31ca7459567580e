// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package secrets_test tests that no value of a Secret is stored or shown.
package secrets_test
