// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pause

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Board knows the pauses of one operator. Its methods are safe for concurrent use.
type Board struct {
	// names are the present and earlier names of the operator.
	names []name

	mu sync.RWMutex
	// operator has the pauses of the operator by the names of their ConfigMaps.
	operator   map[string]Pause
	namespaces map[string]Pause
}

// NewBoard returns the board of an operator.
func NewBoard(op *dsl.Operator) *Board {
	b := &Board{operator: map[string]Pause{}, namespaces: map[string]Pause{}}
	for _, op := range append([]*dsl.Operator{op}, op.Earlier()...) {
		b.names = append(b.names, name{op.Name, op.PauseConfigMap(), op.PausedAnnotation(), op.PausedDeletionsAnnotation()})
	}
	return b
}

// name is a name of the operator, with its ConfigMap and annotations, which each reconcile looks up.
type name struct{ operator, configMap, paused, deletions string }

// SetOperator sets the pause of the operator that a ConfigMap declares; nil for none.
func (b *Board) SetOperator(configMap string, p *Pause) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.operator, configMap)
	if p != nil {
		b.operator[configMap] = *p
	}
}

// Operator returns the pause of the operator, or nil. A pause under the present name wins over one under an earlier
// name.
func (b *Board) Operator() *Pause {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if len(b.operator) == 0 {
		return nil
	}
	for _, n := range b.names {
		p, found := b.operator[n.configMap]
		if !found || p.over(time.Now()) {
			continue
		}
		if n.operator != b.names[0].operator {
			p.Was = n.operator
		}
		return &p
	}
	return nil
}

// SetNamespace sets the annotations of a namespace. It returns its pause before and now; nil for none.
func (b *Board) SetNamespace(name string, annotations map[string]string) (before, now *Pause) {
	now = b.declared(annotations, Namespace)
	b.mu.Lock()
	defer b.mu.Unlock()
	if was, found := b.namespaces[name]; found {
		before = &was
	}
	delete(b.namespaces, name)
	if now != nil {
		now.Namespace = name
		b.namespaces[name] = *now
	}
	return before, now
}

// Namespaces returns the pauses of namespaces, sorted by name.
func (b *Board) Namespaces() []Pause {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.SortedFunc(maps.Values(b.namespaces), func(a, b Pause) int { return strings.Compare(a.Namespace, b.Namespace) })
}

// namespace returns the pause of a namespace; nil if there is none.
func (b *Board) namespace(name string) *Pause {
	b.mu.RLock()
	defer b.mu.RUnlock()
	p, found := b.namespaces[name]
	if !found {
		return nil
	}
	return new(p) // only a pause is copied to the heap, not each reconcile's lookup
}

// Around returns the pause of the operator or of a namespace, without the annotations of objects; nil for none.
// Deleting: it is for objects that are being deleted, or gone.
func (b *Board) Around(namespace string, deleting bool) *Pause {
	if p := b.Operator(); p.stops(deleting) {
		return p
	}
	if p := b.namespace(namespace); p.stops(deleting) {
		return p
	}
	return nil
}

// Of returns the pause that stops handlers of an object; nil for none.
func (b *Board) Of(o metav1.Object) *Pause {
	deleting := o.GetDeletionTimestamp() != nil
	if p := b.Around(o.GetNamespace(), deleting); p != nil {
		return p
	}
	return b.By(o, deleting)
}

// By returns the pause in an object's own annotations, if it stops handlers of the object, or nil.
func (b *Board) By(o metav1.Object, deleting bool) *Pause {
	if p := b.declared(o.GetAnnotations(), Object); p.stops(deleting) {
		return p
	}
	return nil
}

// declared returns the pause in annotations. Any value of the annotation counts.
func (b *Board) declared(annotations map[string]string, by By) *Pause {
	for _, n := range b.names {
		if reason, found := annotations[n.paused]; found {
			return &Pause{By: by, Reason: plain.Short(reason, mostReason), Deletions: annotations[n.deletions] == Proceed}
		}
	}
	return nil
}
