// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package bookkeeping knows the annotations in which operators and tools keep their books: a change of one is none
// that an author meant. And it knows the field managers by which people's hands are told from controllers. It is pure.
package bookkeeping

import "strings"

// Domain ends the prefix of an operator that names no domain of its own.
const Domain = "handwerk.dev"

// Values of operators' annotations begin with a mark, whatever the operator's domain, so that operators recognise
// each other's.
const (
	// StateMark begins the annotation that holds the book of an object.
	StateMark = `{"handwerk":`
	// AppliedMark begins the annotation that tells what a child was applied from.
	AppliedMark = "handwerk:"
)

// Is reports whether an annotation is bookkeeping.
func Is(key, value string) bool {
	return strings.HasPrefix(value, StateMark) || strings.HasPrefix(value, AppliedMark) || known(key)
}

// MayBe reports whether an annotation of that key may be bookkeeping, if its value is such.
func MayBe(key string) bool {
	return known(key) || strings.HasSuffix(key, "/state") || strings.HasSuffix(key, "/applied")
}

// known reports whether the key alone tells whose the annotation is: an operator's without a domain of its own, or
// a tool's that writes it as it handles an object.
func known(key string) bool {
	switch key {
	case "kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision":
		return true
	}
	return strings.HasPrefix(key, "kopf.zalando.org/") || strings.Contains(key, "."+Domain+"/")
}
