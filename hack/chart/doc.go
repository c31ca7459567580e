// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart holds tests of the Helm chart in deploy/chart, with Helm's own library: what its templates make of values, and a
// release that is installed, upgraded and uninstalled on a real control plane. It is a module of its own, so that Helm is no
// dependency of an operator's.
package chart
