// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
)

// podNamespace is where the kubelet tells a pod its namespace.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// realParts are the parts that a program runs with.
func realParts() parts {
	return parts{
		load:         func([]string, *dsl.Registry) (*dsl.Operator, error) { return nil, errors.New("not wired") },
		schema:       func(*dsl.Registry) ([]byte, error) { return nil, errors.New("not wired") },
		engine:       func(*dsl.Operator, settings) (machine, error) { return nil, errors.New("not wired") },
		inCluster:    rest.InClusterConfig,
		podNamespace: podNamespace,
	}
}
