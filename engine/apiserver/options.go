// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// listOptions returns the options of a list or a watch, or why they are refused.
func listOptions(r Request) (metav1.ListOptions, error) {
	var out metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&r.options, &out, nil); err != nil {
		return out, apierrors.NewBadRequest(err.Error())
	}
	errs := validation.ValidateListOptions(&internalversion.ListOptions{
		Watch: r.Verb == "watch", ResourceVersion: out.ResourceVersion, ResourceVersionMatch: out.ResourceVersionMatch,
		Continue: out.Continue, SendInitialEvents: out.SendInitialEvents,
	}, true)
	if len(errs) > 0 {
		return out, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	return out, nil
}

// isTrue reports whether a value of a query is true as the API server reads it.
func isTrue(value string) bool { return value != "" && value != "false" && value != "0" }
