// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// RegisterResource is the resource of ConfigMaps.
var RegisterResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

const (
	// changes is how often a change is tried while others change the register.
	changes = 5
	// readAgain and readAgainMost bound the wait before a register that could not be read is read again.
	readAgain     = time.Second
	readAgainMost = time.Minute
)

// RegisterSettings configure the register. Namespace is optional.
type RegisterSettings struct {
	// Name and Namespace are the ConfigMap's. Without a namespace no register is kept: it is always empty, and drops new
	// entries.
	Name, Namespace string
	// Earlier are the names of the ConfigMap in earlier versions of the operator. Their entries are taken over, and they
	// are deleted.
	Earlier []string
	// Client reaches the ConfigMaps of the namespace. Manager is the field manager. Managers are the operator's managers
	// under its earlier names: entries by others do not count.
	Client   dynamic.ResourceInterface
	Manager  string
	Managers []string
	// Logged knows the errors that the log reports elsewhere.
	Logged transport.Logged
	Log    logr.Logger
}

// Register has the kinds of an operator's children. Its methods may be called by any number of goroutines.
type Register struct {
	server configMap
	// elsewhere knows the errors that the log reports elsewhere.
	elsewhere transport.Logged
	log       logr.Logger
	// turn is held during requests.
	turn chan struct{}

	mu      sync.Mutex
	known   known
	refusal refusal
	// logged is the last logged fault of the contents.
	logged string
}

// NewRegister returns a register that has not been read.
func NewRegister(s RegisterSettings) *Register {
	server := configMap{
		client: s.Client, namespace: s.Namespace, name: s.Name, earlier: s.Earlier,
		manager: s.Manager, managers: append(slices.Clone(s.Managers), s.Manager),
	}
	return &Register{
		server: server, elsewhere: s.Logged, log: s.Log, turn: make(chan struct{}, 1), refusal: refusal{granted: make(chan struct{})},
	}
}

// Kept reports whether the operator has a register.
func (r *Register) Kept() bool { return r.server.namespace != "" }

// Begin begins a term. The known entries are void, because another process may have written since.
func (r *Register) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = known{doubt: r.known.doubt}
	r.refusal.end()
}

// Invalidate makes the register read the ConfigMap again before a kind counts as entered: the cluster may have been restored
// from a backup. Until then the known entries count.
func (r *Register) Invalidate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.doubt = true
}

// OnGranted must be called when a missing right was granted, because it may be one of the register's.
func (r *Register) OnGranted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusal.grant()
}

// Has reports whether a kind is in the register, as far as the register is known.
func (r *Register) Has(resource dsl.ResourceName, kind schema.GroupKind) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.known.kinds[key(resource)], kind)
}

// Known reports whether the register was read, cannot be read, or does not exist.
func (r *Register) Known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known.read || r.refusal.refused || !r.Kept()
}

// Of returns the kinds of a resource, once the register was read. The caller may change them.
func (r *Register) Of(resource dsl.ResourceName) []schema.GroupKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.known.kinds[key(resource)])
}

// key returns the register's key for a resource.
func key(resource dsl.ResourceName) string { return resource.Objects().String() }

// MarkOrphaned waits until the register was read, or ctx has ended. It logs the resources in the register that are not
// among the given ones: the operator leaves their children alone.
func (r *Register) MarkOrphaned(ctx context.Context, all []*dsl.Resource) {
	if !r.Kept() || !r.Await(ctx) {
		return
	}
	r.mu.Lock()
	kinds := maps.Clone(r.known.kinds)
	r.mu.Unlock()
	for _, resource := range all {
		delete(kinds, key(resource.Name))
	}
	for _, resource := range slices.Sorted(maps.Keys(kinds)) {
		var names []string
		for _, kind := range kinds[resource] {
			names = append(names, kind.String())
		}
		r.log.Info("resource is no longer in the configuration; children of its objects are left alone",
			logmark.Warning, true, "resource", resource, "kinds", names, "configMap", r.server.id())
	}
}

// Await waits until the register was read, and returns true. It returns false if ctx ends first.
func (r *Register) Await(ctx context.Context) bool {
	var wait time.Duration
	for logged := false; ; {
		err := r.load(ctx)
		if err == nil || ctx.Err() != nil {
			return err == nil && ctx.Err() == nil
		}
		again, granted := r.fault(err)
		if !again {
			select {
			case <-ctx.Done():
				return false
			case <-granted:
				continue
			}
		}
		if !logged && !r.elsewhere.Logged(err) {
			logged = true
			r.log.Error(err, "reading the register of kinds of children failed; it is retried")
		}
		var in time.Duration
		wait, in = backoff.Next(wait, readAgain, readAgainMost)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(in):
		}
	}
}

// Add adds a kind before a child of that kind is created. A missing right is logged, and is no error.
func (r *Register) Add(ctx context.Context, resource dsl.ResourceName, kind schema.GroupKind) error {
	err := r.change(ctx, key(resource), func(known []schema.GroupKind) []schema.GroupKind {
		if slices.Contains(known, kind) {
			return known
		}
		return append(slices.Clone(known), kind)
	})
	if err != nil {
		return fmt.Errorf("entering kind %s into ConfigMap %s: %w", kind, r.server.id(), err)
	}
	return nil
}

// Remove removes a kind without children. A missing right is no error, and the kind stays.
func (r *Register) Remove(ctx context.Context, resource dsl.ResourceName, kind schema.GroupKind) error {
	err := r.change(ctx, key(resource), func(known []schema.GroupKind) []schema.GroupKind {
		return slices.DeleteFunc(slices.Clone(known), func(other schema.GroupKind) bool { return other == kind })
	})
	if err != nil {
		return fmt.Errorf("taking kind %s out of ConfigMap %s: %w", kind, r.server.id(), err)
	}
	return nil
}

// isIdle reports whether no request is needed: the edit changes nothing, as far as is known, or a right is missing.
func (r *Register) isIdle(resource string, to edit) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusal.lasts(time.Now()) || r.known.stays(resource, to)
}

// change edits the kinds of a resource.
func (r *Register) change(ctx context.Context, resource string, to edit) error {
	if !r.Kept() || r.isIdle(resource, to) {
		return nil
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for attempt := 1; ; attempt++ {
		err := r.write(ctx, resource, to)
		if err == nil {
			return nil
		}
		again := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
		if again && attempt < changes {
			r.Begin() // others have changed it since it was read
			continue
		}
		if retry, _ := r.fault(err); !retry {
			return nil
		}
		return err
	}
}

// write tries a change once.
func (r *Register) write(ctx context.Context, resource string, to edit) error {
	if err := r.fetch(ctx); err != nil {
		return err
	}
	if r.isIdle(resource, to) {
		return nil
	}
	r.mu.Lock()
	before, object := r.known.kinds, r.known.object
	r.mu.Unlock()
	kinds := to(before[resource])
	if len(kinds) > len(before[resource]) && (contents{kinds: before}).number() >= mostKinds {
		return r.full()
	}
	next := r.server.blankOr(object)
	if err := set(next, resource, kinds); err != nil {
		return err
	}
	next, err := r.server.store(ctx, next, object != nil)
	if err == nil {
		r.know(next)
	}
	return err
}

// load reads the register unless it has been read.
func (r *Register) load(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return r.fetch(ctx)
}

// fetch is load with the turn held.
func (r *Register) fetch(ctx context.Context) error {
	r.mu.Lock()
	read, doubt := r.known.read, r.known.doubt
	r.known.doubt = false // a doubt that comes meanwhile counts
	r.mu.Unlock()
	if read && !doubt {
		return nil
	}
	o, err := r.server.read(ctx)
	if err != nil {
		if doubt {
			r.Invalidate()
		}
		return err
	}
	r.know(o)
	return nil
}

// know records the ConfigMap, and logs invalid entries once.
func (r *Register) know(o *unstructured.Unstructured) {
	c := read(o, r.server.managers)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.object, r.known.kinds, r.known.read = o, c.kinds, true
	if c.whole() {
		return
	}
	fault := fmt.Sprint(c.foreign, c.faulty, c.surplus)
	if fault == r.logged {
		return
	}
	r.logged = fault
	r.log.Info("register of kinds of children has invalid entries; children of these kinds are found only where the configuration declares them",
		logmark.Warning, true, "configMap", r.server.id(), "othersKeys", c.foreign[:min(len(c.foreign), shown)], "writers", writers(o, r.server.managers),
		"faulty", c.faulty, "tooMany", c.surplus)
}
