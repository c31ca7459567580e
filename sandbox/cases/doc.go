// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package cases tests operators by cases that are written in YAML.
//
// A case stands in a file beside the operator, whose name ends with _test.yaml. It has objects that are there before,
// steps, and what is expected. It runs against an API server in memory that does what a real one does, in which
// workloads come alive, and in virtual time. Each case has its own cluster.
//
// `operator test` runs cases; [Run] runs them in a Go test.
package cases
