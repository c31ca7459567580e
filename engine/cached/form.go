// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Form says how a cache holds the objects of one resource. The zero Form holds them whole.
type Form struct {
	// Kind is the kind of the resource's objects. Only the profiles metadata and live use it: a
	// server that sends metadata alone does not say the kind. Without it, trees of metadata have
	// none.
	Kind string
	// Profile defaults to dsl.CacheCompact.
	Profile dsl.CacheProfile
	// Keep limits what the compact profile holds to apiVersion, kind, metadata and these paths;
	// [Keep] writes it. Empty means the whole object. Other profiles ignore it.
	Keep string
	// Manager is the field manager whose entries in managedFields are held; all others are
	// dropped. Empty drops all.
	Manager string
	// Vouches, where it is set, limits that to objects with an annotation of this key whose value begins
	// with Vouched: only there does anybody ask whether the manager wrote it.
	Vouches, Vouched string
}

// WithDefaults fills in what is left open and drops what the profile ignores, so that forms that
// mean the same are equal.
func (f Form) WithDefaults() Form {
	if f.Profile == "" {
		f.Profile = dsl.CacheCompact
	}
	if f.Profile != dsl.CacheCompact {
		f.Keep = ""
	}
	if f.Profile == dsl.CacheLive {
		f.Manager, f.Vouches, f.Vouched = "", "", ""
	}
	return f
}

// Shown returns an object that came from the server as a cache of this form shows it. Values are
// shared with it.
func (f Form) Shown(o *unstructured.Unstructured) *unstructured.Unstructured {
	keep, err := parseKeep(f.Keep)
	if f.Profile == dsl.CacheMetadata {
		keep = always()
	}
	if err != nil || len(keep) == 0 {
		return o
	}
	return &unstructured.Unstructured{Object: keep.of(o.Object)}
}
