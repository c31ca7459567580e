// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package notfound

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// believed is how long creations in a namespace are suppressed after its deletion has refused a request. It is
// short, because a new namespace of that name may be created at any time.
const believed = 10 * time.Second

// IsNamespaceTerminating reports whether a request was refused because this namespace is being deleted. That cannot be taken back: nothing
// is made in it any more, and all that is in it goes.
func IsNamespaceTerminating(err error, namespace string) bool {
	cause, refused := apierrors.StatusCause(err, corev1.NamespaceTerminatingCause)
	return refused && cause.Message == "namespace "+namespace+" is being terminated"
}

// Namespaces remembers namespaces that are being deleted, from refusals of the API server: otherwise children and
// Events of each object in such a namespace would be refused again and again. The zero value is empty. Its methods
// are safe for use by several goroutines.
type Namespaces struct {
	mu      sync.Mutex
	refused map[string]refusal
}

// refusal is the response to a request in a terminating namespace.
type refusal struct {
	err   error
	until time.Time
}

// Record takes the result of a request that creates an object in a namespace; nil for success. It reports whether
// the request was refused because the namespace is being deleted.
func (n *Namespaces) Record(namespace string, err error) (ends bool) {
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

// Rejection returns the last refusal by a namespace's deletion; nil if there was none in the last 10 seconds.
func (n *Namespaces) Rejection(namespace string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.refused[namespace]; time.Now().Before(known.until) {
		return known.err
	}
	return nil
}
