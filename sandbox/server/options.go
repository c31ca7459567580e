// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validOptions returns why the options of a list or a watch are refused, or nil.
func validOptions(r Request, o metav1.ListOptions) error {
	errs := validation.ValidateListOptions(&internalversion.ListOptions{
		Watch: r.Verb == "watch", ResourceVersion: o.ResourceVersion, ResourceVersionMatch: o.ResourceVersionMatch,
		Continue: o.Continue, SendInitialEvents: o.SendInitialEvents,
	}, true)
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	return nil
}

// isTrue reports whether a value of a query is true as the API server reads it.
func isTrue(value string) bool { return value != "" && value != "false" && value != "0" }

// check refuses a write with invalid options, and reports whether it is a dry run.
func (r Request) check() (dry bool, err error) {
	var errs field.ErrorList
	kind, runs := "", []string(nil)
	switch r.Verb {
	case "create":
		var o metav1.CreateOptions
		err = metav1.Convert_url_Values_To_v1_CreateOptions(&r.options, &o, nil)
		kind, runs, errs = "CreateOptions", o.DryRun, metav1validation.ValidateCreateOptions(&o)
	case "update":
		var o metav1.UpdateOptions
		err = metav1.Convert_url_Values_To_v1_UpdateOptions(&r.options, &o, nil)
		kind, runs, errs = "UpdateOptions", o.DryRun, metav1validation.ValidateUpdateOptions(&o)
	case "patch":
		var o metav1.PatchOptions
		err = metav1.Convert_url_Values_To_v1_PatchOptions(&r.options, &o, nil)
		kind, runs, errs = "PatchOptions", o.DryRun, metav1validation.ValidatePatchOptions(&o, types.PatchType(r.contentType))
	case "delete", "deletecollection":
		o, err := r.deletion()
		return len(o.DryRun) > 0, err
	}
	switch {
	case err != nil:
		return false, apierrors.NewBadRequest(err.Error())
	case len(errs) > 0:
		return false, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
	}
	return len(runs) > 0, nil
}

// deletion returns the options of a deletion: those of its body, or of the query if there is no body.
func (r Request) deletion() (metav1.DeleteOptions, error) {
	var out metav1.DeleteOptions
	kind, _ := r.Body["kind"].(string)
	err := r.malformed
	switch {
	case err != nil:
	case kind != "" && kind != "DeleteOptions":
		err = fmt.Errorf("no kind %q is registered for version %q in scheme \"pkg/runtime/scheme.go:111\"", kind, r.Body["apiVersion"])
	case len(r.raw) > 0:
		err = json.Unmarshal(r.raw, &out)
	default:
		err = metav1.Convert_url_Values_To_v1_DeleteOptions(&r.options, &out, nil)
	}
	if err != nil {
		return out, apierrors.NewBadRequest(err.Error())
	}
	if errs := metav1validation.ValidateDeleteOptions(&out); len(errs) > 0 {
		return out, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	return out, nil
}
