// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// newCore returns a REST client of the core group.
func newCore(config *rest.Config, client *http.Client) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion()
	return rest.RESTClientForConfigAndClient(config, client)
}

// Core returns the REST client of the core group, version v1. The options of requests are encoded by [scheme.ParameterCodec].
func (c *Clients) Core() rest.Interface { return c.core }

// Pod reads a Pod.
func (c *Clients) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := c.core.Get().Namespace(namespace).Resource("pods").Name(name).Do(ctx).Into(pod)
	return pod, err
}
