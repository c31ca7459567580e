// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// Secrets is the resource of Secrets.
var Secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// KeySettings configure the key of digests. Namespace is optional.
type KeySettings struct {
	// Name and Namespace are the Secret's. Without a namespace, the key is only known in the process.
	Name, Namespace string
	// Client reaches the Secrets of the namespace. Manager is the field manager.
	Client  dynamic.ResourceInterface
	Manager string
	// Digests gets the key.
	Digests Digests
}

// Digests computes digests with a key, as [progress.Key] does.
type Digests interface {
	Set(key []byte)
}

// Key is the Secret with the key of digests. The first process that needs it creates it.
type Key struct {
	settings KeySettings
	// turn is held during requests.
	turn chan struct{}
	// known is true if the key was set in this term.
	known atomic.Bool
}

// NewKey returns a key that has not been read.
func NewKey(s KeySettings) *Key { return &Key{settings: s, turn: make(chan struct{}, 1)} }

// Begin begins a term: another process may have made a new key since.
func (k *Key) Begin() { k.known.Store(false) }

// Is reports whether a Secret is the key.
func (k *Key) Is(namespace, name string) bool {
	return k.settings.Namespace != "" && namespace == k.settings.Namespace && name == k.settings.Name
}

// Ready sets the key, unless that was done in this term.
func (k *Key) Ready(ctx context.Context) error {
	if k.known.Load() || k.settings.Namespace == "" {
		return nil
	}
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-k.turn }()
	if k.known.Load() {
		return nil
	}
	secret, err := k.find(ctx)
	if err != nil {
		return fmt.Errorf("getting the key of digests of Secrets from Secret %s/%s: %w", k.settings.Namespace, k.settings.Name, err)
	}
	k.settings.Digests.Set(secret)
	k.known.Store(true)
	return nil
}

// find reads the key, or creates it. If another process creates it first, find returns that key.
func (k *Key) find(ctx context.Context) ([]byte, error) {
	secret, err := k.read(ctx)
	if !apierrors.IsNotFound(err) {
		return secret, err
	}
	secret = progress.RandomKey()
	immutable := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
		"metadata": map[string]any{"name": k.settings.Name, "namespace": k.settings.Namespace},
		"data":     map[string]any{keyField: base64.StdEncoding.EncodeToString(secret)},
	}}
	_, err = k.settings.Client.Create(ctx, immutable, metav1.CreateOptions{FieldManager: k.settings.Manager})
	if apierrors.IsAlreadyExists(err) {
		return k.read(ctx)
	}
	return secret, err
}

// keyField is the field of the Secret that has the key.
const keyField = "key"

// shortest is the least length of a key, in bytes.
const shortest = 16

func (k *Key) read(ctx context.Context) ([]byte, error) {
	o, err := k.settings.Client.Get(ctx, k.settings.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	text, _, _ := unstructured.NestedString(o.Object, "data", keyField)
	secret, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(secret) < shortest {
		return nil, errors.New("it has no key in data." + keyField + ": delete it, and a new one is made")
	}
	return secret, nil
}
