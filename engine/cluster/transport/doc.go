// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package transport connects an operator to the API server: one connection for its work, with a rate limit, deadlines and
// metrics, and one without these for the leader's lock. A fence lets writes leave only while the process leads and while their
// attempt runs. [Outages] logs once when the API server begins to fail and once when it
// answers again.
package transport
