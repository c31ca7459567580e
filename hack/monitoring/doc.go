// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring holds tests of the alerts and the dashboard in deploy/chart/files, with Prometheus' own parser and engine.
// It is a module of its own, so that these are no dependency of an operator's.
// Run them with -count=1: Go's cache of results does not see files outside of the module change.
//
// Each metric and label that they use has to be in docs/metrics.md, which a test of engine/e2e holds against the /metrics of a
// running operator. So a metric that gets another name fails there, and, once it has it in the list, here.
package monitoring
