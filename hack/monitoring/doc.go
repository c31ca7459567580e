// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the alerts and the dashboard in deploy/chart/files with Prometheus' own parser and
// engine. It is a separate module, so that operators do not depend on these. Run it with -count=1: Go's cache of
// results does not notice changes of files outside of the module.
//
// The metrics and labels must be in docs/metrics.md, which a test of engine/e2e compares with the /metrics of a
// running operator. If a metric is renamed, the test there fails first, and when the list has the new name, the
// test here.
package monitoring
