// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/tls"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/registration"
)

// authorities is a certificate of others with these CAs.
type authorities []byte

func (a authorities) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }
func (a authorities) Bundle() []byte                                             { return a }
func (a authorities) Changes() <-chan struct{}                                   { return nil }
func (a authorities) Follow(context.Context) error                               { return nil }

// webhooked returns the admission handlers of an operator that needs a webhook, in an engine that has not begun.
func webhooked(t *testing.T) *requests {
	t.Helper()
	op := dsl.New("guard")
	op.Resource("configmaps.v1", nil).Validate("none", func(context.Context, *dsl.AdmissionRequest) error { return nil })
	e, err := New(op, Settings{
		Config: &rest.Config{Host: "127.0.0.1:1"}, Namespace: "ops", Identity: "a", Log: logr.Discard(),
		Webhooks: Webhooks{Address: "127.0.0.1:0", CertDir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e.requests
}

func TestWebhooksAreRegisteredOnceTheirCAsAreKnown(t *testing.T) {
	for name, tt := range map[string]struct {
		bundle []byte
		want   bool
	}{
		"the certificate was not read":               {nil, false},
		"the folder has no ca.crt: the system's CAs": {[]byte{}, true},
		"the folder has ca.crt":                      {[]byte("ca"), true},
	} {
		t.Run(name, func(t *testing.T) {
			q := webhooked(t)
			q.certificate = authorities(tt.bundle)
			keeper, err := registration.New(registration.Settings{Manager: "guard", Labels: map[string]string{"a": "b"}})
			if err != nil {
				t.Fatal(err)
			}
			if q.want(keeper, nil); q.complete.Load() != tt.want {
				t.Errorf("webhooks are registered: %v, want %v", q.complete.Load(), tt.want)
			}
		})
	}
}

// TestNoReviewIsDecidedByCachesThatWereNotFilled holds that reviews wait for good if a process ends while it starts.
func TestNoReviewIsDecidedByCachesThatWereNotFilled(t *testing.T) {
	q := webhooked(t)
	q.certificate = authorities{}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	q.serve(ctx)
	select {
	case <-q.ready:
		t.Error("reviews are decided after the start was cut off")
	default:
	}
}
