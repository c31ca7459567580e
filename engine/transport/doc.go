// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package transport connects an operator to the API server: one connection for its work, with a limit on requests, deadlines
// and metrics, and one for the leader's lock that none of these hold up. A fence lets writes leave only while the process
// leads, and only in the time of their attempt. [Outages] logs once when the API server begins to fail and once when it
// answers again.
package transport
