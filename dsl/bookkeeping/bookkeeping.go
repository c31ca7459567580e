// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package bookkeeping recognises annotations in which operators and tools keep their state, so that their changes
// do not count as changes by an author. It also distinguishes field managers of people from those of controllers. It is
// pure.
package bookkeeping

import "strings"

// Domain is the default of an operator's domain, the second part of its prefix.
const Domain = "handwerk.dev"

// The marks with which the values of operators' annotations begin. They do not depend on the operator's domain, so
// that operators recognise each other's annotations.
const (
	// StateMark is the mark of the annotation with the book of an object.
	StateMark = `{"handwerk":`
	// AppliedMark is the mark of the annotation with the digest of a child's template.
	AppliedMark = "handwerk:"
	// StrictMark is the [AppliedMark] of a child whose drift is strict. The cache holds the managedFields entries of all
	// managers for such a child, because the fields that its template lacks are removed.
	StrictMark = AppliedMark + "strict:"
	// TemplateMark separates the two digests of an [AppliedMark]. The second one is that of the template without the tie to
	// the owner. Children with a [dsl.UpdatePolicy] have it.
	TemplateMark = ";template:"
)

// Is reports whether an annotation is bookkeeping.
func Is(key, value string) bool {
	return strings.HasPrefix(value, StateMark) || strings.HasPrefix(value, AppliedMark) || known(key)
}

// Deployed reports whether a tool such as Helm, Argo CD or Flux uses the key to mark or to control what it deploys.
// For [Is], such annotations are bookkeeping. Handlers may write them nevertheless. A request to reconcile
// (reconcile.fluxcd.io/requestedAt) does not count, because a person makes it.
func Deployed(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	switch domain {
	case "meta.helm.sh", "argocd.argoproj.io", "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io":
		return true
	}
	return false
}

// MayBe reports whether an annotation with that key may be bookkeeping, depending on its value.
func MayBe(key string) bool {
	return known(key) || strings.HasSuffix(key, "/state") || strings.HasSuffix(key, "/applied")
}

// known reports whether the key alone identifies its owner: an operator without a domain of its own, or a tool that
// writes it while it handles or deploys an object.
func known(key string) bool {
	switch key {
	case "kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision":
		return true
	}
	return Deployed(key) || ofKopf(key) || strings.Contains(key, "."+Domain+"/")
}

// ofKopf reports whether a kopf operator uses the key, with kopf's prefix or with its own.
func ofKopf(key string) bool {
	return strings.HasPrefix(key, "kopf.zalando.org/") ||
		strings.HasSuffix(key, "/last-handled-configuration") || strings.HasSuffix(key, "/kopf-managed")
}
