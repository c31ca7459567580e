// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package bookkeeping recognises annotations, labels and finalizers in which operators and tools keep their state, so that
// their changes do not count as changes by an author, and copies of metadata leave them out. It also distinguishes field managers of people from those of controllers. It is
// pure.
package bookkeeping

import "strings"

// Domain is the default of an operator's domain, the second part of its prefix.
const Domain = "handwerk.dev"

// The marks with which the values of operators' annotations begin. They do not depend on the operator's domain, so
// that operators recognise each other's annotations.
const (
	// StateMark is the mark of the annotation with the progress of an object.
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

// IsLabel reports whether a label is bookkeeping: a tool finds and prunes its objects by such labels. The label
// app.kubernetes.io/instance does not count. Argo CD may track by it, but authors select by it.
func IsLabel(key, value string) bool {
	return MayBeLabel(key) && (key != managedBy || value == "Helm")
}

// MayBeLabel reports whether a label with that key may be bookkeeping, depending on its value.
func MayBeLabel(key string) bool {
	domain, name, _ := strings.Cut(key, "/")
	switch domain {
	case "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io":
		return true
	case "argocd.argoproj.io": // others, as secret-type, are for a person to set
		return name == "instance"
	case "applyset.kubernetes.io":
		return true
	}
	return key == managedBy || name == "owner" && strings.HasSuffix(domain, "."+Domain)
}

// managedBy is the label that Helm sets to its own name on all its objects.
const managedBy = "app.kubernetes.io/managed-by"

// IsFinalizer reports whether a finalizer belongs to an operator or a deployment tool, which would not remove it from a
// copy.
func IsFinalizer(name string) bool {
	domain, _, _ := strings.Cut(name, "/")
	return domain == "finalizers.fluxcd.io" || domain == "kopf.zalando.org" ||
		strings.HasSuffix(domain, ".argocd.argoproj.io") || strings.HasSuffix(domain, "."+Domain)
}

// Deployed reports whether a tool such as Helm, Argo CD or Flux uses the key to mark or to control what it deploys.
// For [Is], such annotations are bookkeeping. Handlers may write them nevertheless. A request to reconcile
// (reconcile.fluxcd.io/requestedAt) does not count, because a person makes it.
func Deployed(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	switch domain {
	case "meta.helm.sh", "argocd.argoproj.io", "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io", "applyset.kubernetes.io":
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
