// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// shared are Secrets; another process makes one of them before ours does.
type shared struct {
	dynamic.ResourceInterface
	theirs string
	reads  int
}

// Get finds nothing the first time.
func (s *shared) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	if s.reads++; s.reads == 1 {
		return nil, apierrors.NewNotFound(Secrets.GroupResource(), "op-key")
	}
	return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"key": s.theirs}}}, nil
}

// Create comes second.
func (s *shared) Create(context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewAlreadyExists(Secrets.GroupResource(), "op-key")
}

// digests records the key that was set.
type digests string

func (d *digests) Set(key []byte) { *d = digests(key) }

// TestAKeyIsMadeOnce holds that the second process takes the key of the first, and that a Secret without a key is ignored.
func TestAKeyIsMadeOnce(t *testing.T) {
	for name, tt := range map[string]struct{ theirs, key, says string }{
		"a key of another process": {"MDEyMzQ1Njc4OWFiY2RlZg==", "0123456789abcdef", ""},
		"a Secret without a key":   {"", "", "Secret ops/op-key: it has no key in data.key"},
		"a key that is too short":  {"eA==", "", "it has no key in data.key"},
	} {
		t.Run(name, func(t *testing.T) {
			var set digests
			k := NewKey(KeySettings{
				Name: "op-key", Namespace: "ops", Client: &shared{theirs: tt.theirs}, Manager: "op", Digests: &set,
			})
			err := k.Ready(t.Context())
			if string(set) != tt.key || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the key is %q: %v", set, err)
			}
		})
	}
}
