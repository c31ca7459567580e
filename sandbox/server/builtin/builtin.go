// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package builtin has the schemas of the built-in kinds for an API server in memory: what their fields are, which
// defaults they have, which values are invalid and which fields cannot change.
//
// The fields come from the Go types of the kinds, which the clients link anyway. The rest is in rules, one for each
// kind: functions that set defaults, check an object and compare it with the stored one. They have what operators and
// the people who write them meet; a real API server checks more of rare fields. Nothing is built before it is used.
package builtin

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// Kinds are the built-in kinds of one API server. It is safe for use by several goroutines.
type Kinds struct {
	// known are the enumerations, once they were asked for.
	known enumerations

	mu    sync.Mutex
	forms map[schema.GroupVersionKind]*form
}

// New returns the kinds. It has no schema yet; each is made when it is asked for.
func New() *Kinds {
	return &Kinds{forms: map[schema.GroupVersionKind]*form{}}
}

// Builtin returns the schema of a built-in kind, or nil if it has none.
func (k *Kinds) Builtin(kind schema.GroupVersionKind) server.Schema {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, known := k.forms[kind]
	if !known {
		if scheme.Scheme.Recognizes(kind) {
			f = &form{kind: kind, rule: ruleOf(kind), known: &k.known}
		}
		k.forms[kind] = f
	}
	if f == nil {
		return nil
	}
	return f
}
