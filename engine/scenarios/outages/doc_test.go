// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package outages_test tests faults of the API server: outages, caches that lag, responses that say wrongly that an object is not found, and
// a server that was restored from a backup.
package outages_test
