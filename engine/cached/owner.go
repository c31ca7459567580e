// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// owner is an owner reference. Most owners have the kind of many others.
type owner struct {
	kind              unique.Handle[typeMeta]
	name              string
	uid               types.UID
	controller, block bool
}

// ownerIn reads an owner reference of a tree.
func ownerIn(ref any) owner {
	m, _ := ref.(map[string]any)
	o := owner{
		kind: unique.Make(typeMeta{text(m, "apiVersion"), text(m, "kind")}),
		name: text(m, "name"),
		uid:  types.UID(text(m, "uid")),
	}
	o.controller, _ = m["controller"].(bool)
	o.block, _ = m["blockOwnerDeletion"].(bool)
	return o
}

func (w owner) reference() metav1.OwnerReference {
	kind := w.kind.Value()
	return metav1.OwnerReference{
		APIVersion: kind.apiVersion, Kind: kind.kind, Name: w.name, UID: w.uid,
		Controller: &w.controller, BlockOwnerDeletion: &w.block,
	}
}

// Controller returns the uid of the owner that controls the object, empty when there is none.
func (o *Object) Controller() types.UID {
	for _, w := range o.owners {
		if w.controller {
			return w.uid
		}
	}
	return ""
}
