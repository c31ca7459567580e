// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package ops is what a person or a cluster sees of an operator from outside: metrics and the
// state of its health over HTTP.
//
// [Metrics] counts. It has a registry of its own, so two operators in one process do not mix.
// Where the ecosystem has a name for a metric (workqueue_*, rest_client_*,
// leader_election_master_status) it is used, so dashboards and alerts that exist work; the rest
// begins with "handwerk_". The label "resource" is always a resource as its operator declares it,
// see [dsl.ResourceName].
//
// [Server] serves. /healthz and /readyz answer as those of the Kubernetes API server do, with
// ?verbose, ?exclude=CHECK and a path for each check; /metrics and the profiles have addresses of
// their own. A check that warns shows what is degraded and does not make the whole unready: see
// [State].
package ops
