// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"reflect"

	"github.com/handwerk-dev/handwerk/sandbox/server/policy"
	"github.com/handwerk-dev/handwerk/sandbox/server/webhook"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inquiry is a request about which webhooks are asked. It needs no lock of the server.
type inquiry struct {
	webhook.Attributes
	call  *policy.Call
	reply *reply
	view  view
}

// review asks webhooks one after the other. Each sees what those before have changed. Those that only validate are all asked, as a real
// server asks them at the same time, so the client gets the warnings of all.
func (q inquiry) review(hooks []hook, dial webhook.Dial) (map[string]any, error) {
	ctx := q.reply.request.Context()
	var refusal error
	for _, h := range hooks {
		version, found := h.Matches(q.Attributes)
		if !found {
			continue
		}
		in, err := q.in(version)
		if err != nil {
			return nil, err
		}
		holds, err := q.holds(h, in)
		if err != nil {
			return nil, apierrors.NewForbidden(q.Resource.GroupResource(), q.call.Name, err)
		} else if !holds {
			continue
		}
		object, warnings, err := h.Review(ctx, in, dial)
		q.reply.warn(warnings...)
		switch {
		case err == nil && !reflect.DeepEqual(object, in.Object):
			if err := q.take(object); err != nil {
				return nil, err
			}
		case err != nil && h.Mutating:
			return nil, err
		case refusal == nil:
			refusal = err
		}
	}
	return q.Object, refusal
}

// in returns the request as a webhook sees it whose rules have a version of the resource.
func (q inquiry) in(version string) (out webhook.Attributes, err error) {
	out = q.Attributes
	out.Kind.Version, out.Resource.Version, q.view.version = version, version, version
	if out.Object, err = q.view.fieldsOf(out.Object); err != nil {
		return out, err
	}
	out.Old, err = q.view.fieldsOf(out.Old)
	return out, err
}

// holds reports whether the conditions of a webhook hold for the request as the webhook sees it.
func (q inquiry) holds(h hook, in webhook.Attributes) (bool, error) {
	sees := policy.Version{Resource: in.Resource, Kind: in.Kind, Object: in.Object, Old: in.Old}
	call := *q.call
	if in.Kind == call.Kind {
		call.Version = sees
	}
	return h.conditions.Hold(q.reply.request.Context(), &call, sees)
}

// take makes an object that a webhook has changed the one that is to be stored, in the version of the one before.
func (q *inquiry) take(object map[string]any) (err error) {
	before := schema.FromAPIVersionAndKind((&unstructured.Unstructured{Object: q.Object}).GetAPIVersion(), "")
	to := q.view
	to.version = before.Version
	q.Object, err = to.fieldsOf(object)
	return err
}

// fieldsOf returns an object, which may be nil, as the version shows it.
func (v view) fieldsOf(object map[string]any) (map[string]any, error) {
	o := &unstructured.Unstructured{Object: object}
	if object == nil || o.GetAPIVersion() == (schema.GroupVersion{Group: v.group, Version: v.version}).String() {
		return object, nil
	}
	out, err := v.convertObject(o)
	if err != nil {
		return nil, err
	}
	return v.converted(out.DeepCopy()).Object, nil
}
