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

// Deployed reports whether a key is one by which a tool marks or steers what it deploys: Helm, Argo CD and Flux. Such annotations
// are bookkeeping, as [Is] says. A handler may write them nevertheless. A request to reconcile (reconcile.fluxcd.io/requestedAt) is
// none of them: a person makes it.
func Deployed(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	switch domain {
	case "meta.helm.sh", "argocd.argoproj.io", "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io":
		return true
	}
	return false
}

// Later reports whether a key tells whose the annotation is, and did not do so in the first releases: it is one of those of
// [Deployed], or of a kopf operator with a prefix of its own.
func Later(key string) bool {
	return Deployed(key) || !strings.HasPrefix(key, "kopf.zalando.org/") &&
		(strings.HasSuffix(key, "/last-handled-configuration") || strings.HasSuffix(key, "/kopf-managed"))
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
	return strings.HasPrefix(key, "kopf.zalando.org/") || strings.Contains(key, "."+Domain+"/") || Later(key)
}
