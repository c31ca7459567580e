// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package component holds the parts of a control plane that are built into the controlplane program.
// Each is the main function of an upstream program and owns its process: they share flags, metrics
// and feature gates as globals, so two of them must never run in one process. What a component
// needs is made inside its function, never earlier.
//
// Built with the tag "assets" the package is empty, small and quick to build: etcd and the
// Kubernetes programs are then taken from the folder KUBEBUILDER_ASSETS.
package component
