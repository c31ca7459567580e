// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart tests the Helm chart in deploy/chart with Helm's own library: the rendered templates, and a release
// that is installed, upgraded and uninstalled on a real control plane. It is a separate module, so that operators
// do not depend on Helm.
package chart
