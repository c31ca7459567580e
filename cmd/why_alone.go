// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/handwerk-dev/handwerk/engine/why"
)

// readAlone answers with what lies on an object, without its operator, which does not answer for a reason.
func readAlone(ctx context.Context, config *rest.Config, q why.Question, reason error) (*why.Answer, error) {
	object, resource, err := readObject(ctx, config, q)
	if err != nil {
		return nil, fmt.Errorf("reading %s/%s: %w", q.Resource, q.Name, err)
	}
	out := &why.Answer{
		At: time.Now(), Resource: resource, Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		UID: string(object.GetUID()), Generation: object.GetGeneration(),
		Without: "the operator does not answer, and this lies on the object: " + reason.Error(),
	}
	if at := object.GetDeletionTimestamp(); at != nil {
		out.Deletion = &why.Deletion{Since: at.Time, Finalizers: object.GetFinalizers()}
		for _, f := range object.GetFinalizers() {
			out.Deletion.Held = append(out.Deletion.Held, "finalizer "+f)
		}
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		text := func(key string) string {
			value, _ := fields[key].(string)
			return value
		}
		out.Conditions = append(out.Conditions, why.Condition{
			Type: text("type"), Status: text("status"), Reason: text("reason"), Message: text("message"),
		})
	}
	return out, nil
}

// readObject reads an object whose resource is named as in kubectl.
func readObject(ctx context.Context, config *rest.Config, q why.Question) (o *unstructured.Unstructured, resource string, err error) {
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, "", err
	}
	served, err := restmapper.GetAPIGroupResources(found)
	if err != nil {
		return nil, "", err
	}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(served), found, nil)
	wanted := schema.ParseGroupResource(strings.ToLower(q.Resource)).WithVersion("")
	if full, _ := schema.ParseResourceArg(strings.ToLower(q.Resource)); full != nil {
		if gvr, err := mapper.ResourceFor(*full); err == nil {
			wanted = gvr
		}
	}
	gvr, err := mapper.ResourceFor(wanted)
	if err != nil {
		return nil, "", err
	}
	kind, err := mapper.KindFor(gvr)
	if err != nil {
		return nil, "", err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, "", err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, "", err
	}
	if mapping.Scope.Name() == "namespace" {
		o, err = client.Resource(gvr).Namespace(q.Namespace).Get(ctx, q.Name, metav1.GetOptions{})
	} else {
		o, err = client.Resource(gvr).Get(ctx, q.Name, metav1.GetOptions{})
	}
	return o, gvr.GroupResource().String(), err
}
