// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package bookkeeping

import "strings"

// Adopted is the field manager that has what people's hands had set of an object before it was adopted.
const Adopted = "handwerk-adopted"

// Hand is what a field manager is to those who keep an object as it should be.
type Hand int

// The hands.
const (
	// NoHand is a controller, a webhook, another operator or a tool that is not known.
	NoHand Hand = iota
	// Light is a command of kubectl that notes something on an object, or asks its controller for something.
	Light
	// Editing is a command of kubectl that says what an object is to be.
	Editing
)

// HandOf says what a field manager is.
func HandOf(manager string) Hand {
	switch manager {
	case "kubectl", // apply --server-side, and the scale of old releases
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
