// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/backoff"
	"github.com/handwerk-dev/handwerk/engine/transport"
)

// RegisterResource is the resource of ConfigMaps.
var RegisterResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

const (
	// changes is how often a change is worked out, when others change the register at the same time.
	changes = 5
	// readAgain and readAgainMost bound the wait before a register that could not be read is read again.
	readAgain     = time.Second
	readAgainMost = time.Minute
	// writeAgain is how long a register rests that the server did not take.
	writeAgain = 10 * time.Minute
)

// RegisterSettings configure the register. Namespace is optional.
type RegisterSettings struct {
	// Name and Namespace are the ConfigMap's. Without a namespace no register is kept: all that is entered is
	// forgotten, and there is never anything in it.
	Name, Namespace string
	// Earlier are the names that the ConfigMap had in earlier versions of the operator. What they have is taken over, and
	// they are deleted.
	Earlier []string
	// Client reaches the ConfigMaps of the namespace, Manager is the field manager. Managers are those that the operator has under
	// its earlier names: what somebody else wrote does not count.
	Client   dynamic.ResourceInterface
	Manager  string
	Managers []string
	// Logged knows the errors that the log reports elsewhere.
	Logged transport.Logged
	Log    logr.Logger
}

// Register is an operator's. Its methods may be called by any number of goroutines.
type Register struct {
	settings RegisterSettings
	// turn is held by who asks the server.
	turn chan struct{}

	mu sync.Mutex
	// object is the last known ConfigMap, or nil. Read is true when it was read.
	object *unstructured.Unstructured
	kinds  map[string][]schema.GroupKind
	read   bool
	// doubt is true when the ConfigMap may have changed since it was read.
	doubt bool
	// refused: a right is missing, or the server does not take the register. Granted is closed when a right may have been given; it is
	// tried again after the time again, where that is set.
	refused bool
	again   time.Time
	granted chan struct{}
	// logged is the last logged fault of the contents.
	logged string
}

// NewRegister returns a register that has not been read.
func NewRegister(s RegisterSettings) *Register {
	return &Register{settings: s, turn: make(chan struct{}, 1), granted: make(chan struct{})}
}

// Kept reports whether the operator has a register.
func (r *Register) Kept() bool { return r.settings.Namespace != "" }

// Begin begins a term: what is known is void, for another process may have written since.
func (r *Register) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.object, r.kinds, r.read, r.refused, r.again = nil, nil, false, false, time.Time{}
}

// Doubt has the register read again before a kind counts as entered: the cluster may have been restored from a backup.
// Until then what is known holds.
func (r *Register) Doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubt = true
}

// Granted says that a right was given that was missing, perhaps one of the register's.
func (r *Register) Granted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused {
		r.refused = false
		close(r.granted)
		r.granted = make(chan struct{})
	}
}

// Has reports whether a kind is in the register, as far as that is known.
func (r *Register) Has(resource dsl.ResourceName, kind schema.GroupKind) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.kinds[key(resource)], kind)
}

// Known reports whether the register was read, cannot be read, or does not exist.
func (r *Register) Known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read || r.refused || !r.Kept()
}

// Of returns the kinds of a resource, once the register was read. They are the caller's.
func (r *Register) Of(resource dsl.ResourceName) []schema.GroupKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.kinds[key(resource)])
}

// key is what the register calls a resource.
func key(resource dsl.ResourceName) string { return resource.Objects().String() }

// Forsaken waits until the register was read, or ctx has ended, and logs the resources in it that are not among the given ones: the
// operator leaves their children alone.
func (r *Register) Forsaken(ctx context.Context, all []*dsl.Resource) {
	if !r.Kept() || !r.Await(ctx) {
		return
	}
	r.mu.Lock()
	kinds := maps.Clone(r.kinds)
	r.mu.Unlock()
	for _, resource := range all {
		delete(kinds, key(resource.Name))
	}
	for _, resource := range slices.Sorted(maps.Keys(kinds)) {
		var names []string
		for _, kind := range kinds[resource] {
			names = append(names, kind.String())
		}
		r.settings.Log.Info("resource is no longer in the configuration; children of its objects are left alone",
			logmark.Warning, true, "resource", resource, "kinds", names, "configMap", r.name())
	}
}

// Await waits until the register was read, and reports whether it was: not when ctx has ended.
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
		if !logged && !r.settings.Logged.Logged(err) {
			logged = true
			r.settings.Log.Error(err, "reading the register of kinds of children failed; it is retried")
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

// Enter adds a kind before a child of that kind is made. A missing right is logged, and is no error.
func (r *Register) Enter(ctx context.Context, resource dsl.ResourceName, kind schema.GroupKind) error {
	err := r.change(ctx, key(resource), func(known []schema.GroupKind) []schema.GroupKind {
		if slices.Contains(known, kind) {
			return known
		}
		return append(slices.Clone(known), kind)
	})
	if err != nil {
		return fmt.Errorf("entering kind %s into ConfigMap %s: %w", kind, r.name(), err)
	}
	return nil
}

// Leave removes a kind without children. A missing right is no error, and the kind stays.
func (r *Register) Leave(ctx context.Context, resource dsl.ResourceName, kind schema.GroupKind) error {
	err := r.change(ctx, key(resource), func(known []schema.GroupKind) []schema.GroupKind {
		return slices.DeleteFunc(slices.Clone(known), func(other schema.GroupKind) bool { return other == kind })
	})
	if err != nil {
		return fmt.Errorf("taking kind %s out of ConfigMap %s: %w", kind, r.name(), err)
	}
	return nil
}

func (r *Register) name() string { return r.settings.Namespace + "/" + r.settings.Name }

// edit returns the kinds of a resource as they are to be.
type edit func([]schema.GroupKind) []schema.GroupKind

// rests reports whether nothing is to be asked of the server: there is nothing to change, as far as is known, or the
// right to it is missing.
func (r *Register) rests(resource string, to edit) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	refused := r.refused && (r.again.IsZero() || time.Now().Before(r.again))
	return refused || r.read && !r.doubt && len(to(r.kinds[resource])) == len(r.kinds[resource])
}

// change edits the kinds of a resource.
func (r *Register) change(ctx context.Context, resource string, to edit) error {
	if !r.Kept() || r.rests(resource, to) {
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
			r.Begin() // it is not as it was read
			continue
		}
		if retry, _ := r.fault(err); !retry {
			return nil
		}
		return err
	}
}

// write makes one try of a change.
func (r *Register) write(ctx context.Context, resource string, to edit) error {
	if err := r.fetch(ctx); err != nil {
		return err
	}
	if r.rests(resource, to) {
		return nil
	}
	r.mu.Lock()
	before := contents{kinds: r.kinds}.number()
	next, there, kinds, more := r.blankOr(r.object), r.object != nil, to(r.kinds[resource]), len(to(r.kinds[resource])) > len(r.kinds[resource])
	r.mu.Unlock()
	if more && before >= MostKinds {
		return r.full()
	}
	if err := set(next, resource, kinds); err != nil {
		return err
	}
	next, err := r.store(ctx, next, there)
	if err == nil {
		r.know(next)
	}
	return err
}

// blankOr returns a copy of the ConfigMap, an empty one for nil.
func (r *Register) blankOr(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o != nil {
		return o.DeepCopy()
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": r.settings.Name, "namespace": r.settings.Namespace},
	}}
}

func (r *Register) store(ctx context.Context, o *unstructured.Unstructured, there bool) (*unstructured.Unstructured, error) {
	if there {
		return r.settings.Client.Update(ctx, o, metav1.UpdateOptions{FieldManager: r.settings.Manager})
	}
	return r.settings.Client.Create(ctx, o, metav1.CreateOptions{FieldManager: r.settings.Manager})
}

// set writes the kinds of a resource into the ConfigMap.
func set(o *unstructured.Unstructured, resource string, kinds []schema.GroupKind) error {
	if len(kinds) == 0 {
		unstructured.RemoveNestedField(o.Object, "data", resource)
		return nil
	}
	lines := make([]string, len(kinds))
	for i, kind := range kinds {
		lines[i] = kind.String() + "\n"
	}
	slices.Sort(lines)
	return unstructured.SetNestedField(o.Object, strings.Join(lines, ""), "data", resource)
}

// load reads the register unless that was done.
func (r *Register) load(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return r.fetch(ctx)
}

// fetch implements load. The caller has the turn.
func (r *Register) fetch(ctx context.Context) error {
	r.mu.Lock()
	read, doubt := r.read, r.doubt
	r.doubt = false // one that comes meanwhile counts
	r.mu.Unlock()
	if read && !doubt {
		return nil
	}
	o, err := r.get(ctx, r.settings.Name)
	if err == nil {
		o, err = r.takeOver(ctx, o)
	}
	if err != nil {
		if doubt {
			r.Doubt()
		}
		return err
	}
	r.know(o)
	return nil
}

// managers are the field managers that write the register.
func (r *Register) managers() []string {
	return append(slices.Clone(r.settings.Managers), r.settings.Manager)
}

func (r *Register) get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	o, err := r.settings.Client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", r.settings.Namespace, name, err)
	}
	return o, nil
}

// know records the ConfigMap, and logs invalid entries once.
func (r *Register) know(o *unstructured.Unstructured) {
	c := read(o, r.managers())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.object, r.kinds, r.read = o, c.kinds, true
	if c.whole() {
		return
	}
	fault := fmt.Sprint(c.foreign, c.faulty, c.surplus)
	if fault == r.logged {
		return
	}
	r.logged = fault
	r.settings.Log.Info("register of kinds of children has invalid entries; children of these kinds are found only where the configuration declares them",
		logmark.Warning, true, "configMap", r.name(), "othersKeys", c.foreign[:min(len(c.foreign), shown)], "writers", writers(o, r.managers()),
		"faulty", c.faulty, "tooMany", c.surplus)
}
