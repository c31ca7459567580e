// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package notfound

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// believed is how long nothing is created in a namespace whose deletion has refused a request. It is short, for a new
// namespace of that name may come at any time.
const believed = 10 * time.Second

// Namespaces remembers namespaces that are being deleted, from refusals of the API server: each object in such a namespace
// would otherwise be refused its children and its Events again and again. The zero value knows none. Its methods may be
// called by any number of goroutines.
type Namespaces struct {
	mu      sync.Mutex
	refused map[string]refusal
}

// refusal is the answer to a request that came too late for its namespace.
type refusal struct {
	err   error
	until time.Time
}

// Learn takes the outcome of a request that creates an object in a namespace, nil for success. It reports whether the
// request was refused because the namespace is being deleted.
func (n *Namespaces) Learn(namespace string, err error) (ends bool) {
	ends = apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for name, known := range n.refused {
		if name == namespace && err == nil || !now.Before(known.until) {
			delete(n.refused, name)
		}
	}
	if ends {
		if n.refused == nil {
			n.refused = map[string]refusal{}
		}
		n.refused[namespace] = refusal{err, now.Add(believed)}
	}
	return ends
}

// Refusal returns the answer to the last request that a namespace's deletion has refused, nil when there was none in the
// last 10 seconds.
func (n *Namespaces) Refusal(namespace string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.refused[namespace]; time.Now().Before(known.until) {
		return known.err
	}
	return nil
}
