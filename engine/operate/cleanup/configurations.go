// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

// hashed matches the suffix of a configuration's ConfigMap, after the name of the Deployment.
var hashed = regexp.MustCompile("^-[0-9a-f]{10}$")

// configurations returns the ConfigMaps of earlier configurations of the operator's Deployment: each has a
// different name, and later bundles do not name them. The one that the Deployment mounts is not included: it is
// deleted with the Deployment.
func (c *Cleaner) configurations(ctx context.Context) (out []Found, err error) {
	if c.set.Deployment == "" {
		return nil, nil
	}
	mounted, err := c.mounted(ctx)
	if err != nil {
		return nil, err
	}
	labels := metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=handwerk,app.kubernetes.io/instance=" + c.op.Name}
	list, err := c.metadata.Resource(configMaps).Namespace(c.set.Namespace).List(ctx, labels)
	if err != nil {
		return nil, fmt.Errorf("listing earlier configurations in namespace %s: %w", c.set.Namespace, err)
	}
	for _, o := range list.Items {
		end, ours := strings.CutPrefix(o.Name, c.set.Deployment)
		if !ours || !hashed.MatchString(end) || mounted[o.Name] {
			continue
		}
		out = append(out, Found{
			Resource:  discovery.Resource{GVR: configMaps, Kind: "ConfigMap", Namespaced: true},
			Namespace: c.set.Namespace, Name: o.Name, UID: o.UID, Own: true,
		})
	}
	return out, nil
}

// mounted returns the ConfigMaps that the operator's Deployment mounts.
func (c *Cleaner) mounted(ctx context.Context) (map[string]bool, error) {
	o, err := c.dynamic.Resource(deployments).Namespace(c.set.Namespace).Get(ctx, c.set.Deployment, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s/%s: %w", c.set.Namespace, c.set.Deployment, err)
	}
	volumes, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "volumes")
	out := map[string]bool{}
	for _, volume := range volumes {
		volume, _ := volume.(map[string]any)
		if name, found, _ := unstructured.NestedString(volume, "configMap", "name"); found {
			out[name] = true
		}
	}
	return out, nil
}
