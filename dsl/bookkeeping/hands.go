// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package bookkeeping

import "strings"

// Adopted is the field manager for fields that people had set on an object before it was adopted.
const Adopted = "handwerk-adopted"

// Hand classifies a field manager for operators that revert drift.
type Hand int

// The classes of field managers.
const (
	// NoHand is a controller, a webhook, another operator or an unknown tool.
	NoHand Hand = iota
	// Light is a kubectl command that notes something on an object, or asks its controller for something.
	Light
	// Editing is a kubectl command that changes the desired state of an object.
	Editing
)

// HandOf classifies a field manager.
func HandOf(manager string) Hand {
	switch manager {
	case "kubectl", // apply --server-side, and scale in old releases
		"kubectl-client-side-apply", "kubectl-create", "kubectl-edit", "kubectl-patch", "kubectl-replace", "kubectl-scale", "kubectl-set":
		return Editing
	case Adopted:
		return Light
	}
	if strings.HasPrefix(manager, "kubectl-") { // as rollout, annotate and label
		return Light
	}
	return NoHand
}

// ControlPlane reports whether a field manager is a part of Kubernetes that fills in objects of others: they are not as
// their authors want them without its fields. "before-first-apply" is the server's name for authors whom it does not know.
func ControlPlane(manager string) bool {
	switch manager {
	case "kube-controller-manager", "kube-scheduler", "kubelet", "before-first-apply":
		return true
	}
	return false
}
