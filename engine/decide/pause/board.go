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

// Board knows the pauses of one operator. Its methods may be called by any number of goroutines.
type Board struct {
	// names are that of the operator, and its earlier ones.
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

// name is a name of the operator, with the name of its ConfigMap and the keys of its annotations, which each reconcile looks up.
type name struct{ operator, configMap, paused, deletions string }

// SetOperator notes the pause of the operator that a ConfigMap declares; nil for none.
func (b *Board) SetOperator(configMap string, p *Pause) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.operator, configMap)
	if p != nil {
		b.operator[configMap] = *p
	}
}

// Operator returns the pause of the operator, or nil. A pause under the current name comes before one under an earlier name.
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

// SetNamespace notes the annotations of a namespace. It returns its pause before and now; nil for none.
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
	return new(p) // which is made for a pause alone, and not in each reconcile
}

// Around returns the pause that keeps handlers from the objects of a namespace, whatever their annotations are; nil if there is
// none. Deleting: it is about those that are being deleted, or gone.
func (b *Board) Around(namespace string, deleting bool) *Pause {
	if p := b.Operator(); p.stops(deleting) {
		return p
	}
	if p := b.namespace(namespace); p.stops(deleting) {
		return p
	}
	return nil
}

// Of returns the pause that keeps handlers from an object; nil if there is none.
func (b *Board) Of(o metav1.Object) *Pause {
	deleting := o.GetDeletionTimestamp() != nil
	if p := b.Around(o.GetNamespace(), deleting); p != nil {
		return p
	}
	return b.By(o, deleting)
}

// By returns the pause that an object declares by its own annotations, if it keeps handlers from the object, or nil.
func (b *Board) By(o metav1.Object, deleting bool) *Pause {
	if p := b.declared(o.GetAnnotations(), Object); p.stops(deleting) {
		return p
	}
	return nil
}

// declared returns the pause that annotations declare. The annotation counts whatever its value is.
func (b *Board) declared(annotations map[string]string, by By) *Pause {
	for _, n := range b.names {
		if reason, found := annotations[n.paused]; found {
			return &Pause{By: by, Reason: plain.Short(reason, mostReason), Deletions: annotations[n.deletions] == Proceed}
		}
	}
	return nil
}
