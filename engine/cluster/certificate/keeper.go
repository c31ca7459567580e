// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package certificate makes and renews the serving certificate of an operator's webhooks.
//
// All replicas read one Secret, and the leader writes it (keeper.go). The decision about a write is a function of the Secret and the
// time (decide.go). A renewal has three steps. The next certificate is made, and clients get its CA. A minute after the caller has
// confirmed that they have it, the certificate is used. Ten minutes later the CA of the old certificate leaves the bundle. So
// whatever the order in which replicas and API servers learn of a step, an API server trusts the certificate that it is shown.
package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
)

// secrets is the resource of Secrets.
var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

const (
	// firstWait and longestWait bound the wait before a failed write is retried.
	firstWait   = 100 * time.Millisecond
	longestWait = time.Minute
)

// Settings say which certificate is kept, and where.
type Settings struct {
	// Client reads and writes the Secret. It takes the rights to get, list, watch and update it by its name, and to create Secrets.
	// Replicas that only follow need list and watch.
	Client dynamic.Interface
	// Namespace and Name are those of the Secret.
	Namespace, Name string
	// Labels are those of a Secret that is created.
	Labels map[string]string
	// Hosts are the names and addresses of the certificate.
	Hosts Hosts
	// Manager is the field manager of writes.
	Manager string
	// Now is for tests that set the clock. Defaults to time.Now.
	Now func() time.Time
	Log logr.Logger
}

// Keeper keeps a certificate. Its methods may be called from any goroutine.
type Keeper struct {
	set Settings
	// served is the content of the Secret when it last had a certificate.
	served atomic.Pointer[content]
	// changes has an element after a change of served, and wake if Lead must decide again.
	changes, wake chan struct{}
	watching      fault

	mu      sync.Mutex
	clients confirmed
}

// New returns a keeper. It sends no request.
func New(set Settings) *Keeper {
	if set.Now == nil {
		set.Now = time.Now
	}
	return &Keeper{
		set: set, changes: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		watching: fault{log: set.Log, fails: "watching the certificate of webhooks failed; it is retried", works: "the certificate of webhooks is watched again"},
	}
}

// Certificate returns the certificate for a client that connects now. It returns an error while the Secret was not read.
func (k *Keeper) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.served.Load(); c != nil {
		return &c.current.pair, nil
	}
	return nil, errors.New("serving webhooks: no certificate was read from the Secret " + k.set.Namespace + "/" + k.set.Name)
}

// Bundle returns the CAs that clients should trust, in PEM; nil while the Secret was not read.
func (k *Keeper) Bundle() []byte {
	if c := k.served.Load(); c != nil {
		return bytes.Clone(c.bundle)
	}
	return nil
}

// Changes returns a channel for one reader. It has an element after the certificate or the bundle has changed.
func (k *Keeper) Changes() <-chan struct{} { return k.changes }

// Confirm says that all configurations have a bundle from now on; nil if one has not. A certificate whose CA they do not have is
// not used.
func (k *Keeper) Confirm(bundle []byte) {
	k.mu.Lock()
	if !bytes.Equal(bundle, k.clients.bundle) {
		k.clients = confirmed{bytes.Clone(bundle), k.set.Now()}
	}
	k.mu.Unlock()
	signal(k.wake)
}

// signal puts an element into a channel with room for one, unless it has one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Follow watches the Secret until ctx ends, so that this process serves its certificate. All replicas run it, the leader, too.
func (k *Keeper) Follow(ctx context.Context) error {
	informer := dynamicinformer.NewFilteredDynamicInformer(k.set.Client, secrets, k.set.Namespace, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=" + k.set.Name }).Informer()
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) { // usual ends of a watch
			k.watching.note(err, k.advice("watching", err))
		}
	}); err != nil {
		return fmt.Errorf("watching the Secret %s/%s: %w", k.set.Namespace, k.set.Name, err)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    k.take,
		UpdateFunc: func(_, o any) { k.take(o) },
		DeleteFunc: func(any) { signal(k.wake) },
	})
	if err != nil {
		return fmt.Errorf("watching the Secret %s/%s: %w", k.set.Namespace, k.set.Name, err)
	}
	informer.RunWithContext(ctx)
	return nil
}

// take stores the certificate of the Secret. If there is none, the last one stays.
func (k *Keeper) take(object any) {
	defer signal(k.wake)
	secret, is := object.(*unstructured.Unstructured)
	if !is || secret.GetName() != k.set.Name {
		return
	}
	k.watching.note(nil, nil)
	s := read(dataOf(secret))
	if s.current == nil {
		return
	}
	k.served.Store(&content{s.current, s.bundle()})
	signal(k.changes)
}

// Lead writes the Secret as time goes on, until ctx ends. Only the leader runs it, together with Follow. If two do for a moment, a
// write of either that is based on an older Secret is refused.
func (k *Keeper) Lead(ctx context.Context) error {
	writing := fault{log: k.set.Log, fails: "writing the certificate of webhooks failed; it is retried", works: "the certificate of webhooks is written again"}
	var last time.Duration
	for {
		again, err := k.keep(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			writing.note(err, k.advice("writing", err))
		}
		wait, wake := again.Sub(k.set.Now()), k.wake
		if err != nil {
			last, wait = backoff.Next(last, firstWait, longestWait)
			wake = nil // each refused write may cause an event
		} else {
			last = 0
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		case <-wake:
		}
	}
}

// keep reads the Secret, writes it if it is time, and returns when to look again.
func (k *Keeper) keep(ctx context.Context) (again time.Time, err error) {
	client := k.set.Client.Resource(secrets).Namespace(k.set.Namespace)
	secret, err := client.Get(ctx, k.set.Name, metav1.GetOptions{})
	if err != nil && !notfound.IsGone(err, secrets.GroupResource(), k.set.Name) {
		return again, err
	}
	missing := err != nil
	if missing {
		secret = k.empty()
	}
	d, err := decide(dataOf(secret), k.served.Load(), k.set.Hosts, k.known(), k.set.Now())
	if err != nil || d.data == nil {
		return d.again, err
	}
	if err := unstructured.SetNestedMap(secret.Object, encoded(d.data), "data"); err != nil {
		return again, err
	}
	if missing {
		_, err = client.Create(ctx, secret, metav1.CreateOptions{FieldManager: k.set.Manager})
	} else {
		_, err = client.Update(ctx, secret, metav1.UpdateOptions{FieldManager: k.set.Manager})
	}
	if err == nil {
		k.set.Log.Info("certificate of webhooks changes", "step", d.step)
	}
	return d.again, err
}

func (k *Keeper) known() confirmed {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clients
}

// empty returns a Secret without content.
func (k *Keeper) empty() *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls"}}
	o.SetName(k.set.Name)
	o.SetNamespace(k.set.Namespace)
	o.SetLabels(k.set.Labels)
	return o
}

// advice returns an error with what to do about it. The API server's answer may quote the Secret if it is invalid.
func (k *Keeper) advice(doing string, err error) error {
	name := k.set.Namespace + "/" + k.set.Name
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s the Secret %s: the account lacks a right; operator rbac prints the roles", doing, name)
	case apierrors.IsInvalid(err):
		return fmt.Errorf("%s the Secret %s: the API server refuses its content; delete the Secret if it is immutable", doing, name)
	}
	return fmt.Errorf("%s the Secret %s: %w", doing, name, err)
}

// dataOf returns the content of a Secret.
func dataOf(secret *unstructured.Unstructured) map[string][]byte {
	fields, _, _ := unstructured.NestedMap(secret.Object, "data")
	out := map[string][]byte{}
	for key, value := range fields {
		text, _ := value.(string)
		out[key], _ = base64.StdEncoding.DecodeString(text) // the API server has checked it
	}
	return out
}

// encoded is the form of a content within an object.
func encoded(data map[string][]byte) map[string]any {
	out := map[string]any{}
	for key, value := range data {
		out[key] = base64.StdEncoding.EncodeToString(value)
	}
	return out
}

// fault logs an error once, and its end.
type fault struct {
	log          logr.Logger
	fails, works string

	mu   sync.Mutex
	last metav1.StatusReason
}

// note takes the error of an attempt, and the error as people see it. While requests do not get through, that is logged once for all of them
// elsewhere.
func (f *fault) note(err, shown error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reason := apierrors.ReasonForError(err)
	switch {
	case err != nil && reason == metav1.StatusReasonUnknown:
		f.log.V(1).Info(f.fails, "error", shown.Error())
		return
	case reason == f.last:
	case err == nil:
		f.log.Info(f.works)
	default:
		f.log.Error(shown, f.fails)
	}
	f.last = reason
}
