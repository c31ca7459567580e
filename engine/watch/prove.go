// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// early is how much sooner than asked a server may end a watch that ends in its time.
const early = 2 * time.Second

// newest returns the server's newest version, by a list of one object. The list has no label selector, because a server may have
// to read all objects to find one with a label.
func (i *informer) newest(ctx context.Context) (string, error) {
	objects := i.set.settings.Metadata.Resource(i.src.GVR).Namespace(i.src.Namespace)
	list, err := objects.List(ctx, metav1.ListOptions{Limit: 1, FieldSelector: i.src.FieldSelector})
	if err != nil {
		return "", fmt.Errorf("getting newest version of %s: %w", i.src, err)
	}
	return list.GetResourceVersion(), nil
}

// cut notes that a watch has ended. One that ends before its time may have lost its server, and the server may come back with
// etcd set back to a snapshot.
func (o *observer) cut(s *stream) {
	if s.limit > 0 && time.Since(s.opened) >= s.limit-overdueAfter-early {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cuts++
}

// prove asks for the server's newest version once after a watch was cut: a watch that is resumed at a version which the server
// has yet to reach says nothing. What fails is tried again until the source lists.
func (o *observer) prove(ctx context.Context) {
	o.mu.Lock()
	begins := o.informer != nil && !o.proving && o.proven < o.cuts
	o.proving = o.proving || begins
	o.mu.Unlock()
	if begins {
		o.streams.Go(func() { o.ask(ctx) })
	}
}

// ask is prove once it has begun.
func (o *observer) ask(ctx context.Context) {
	again := pace{}
	for {
		cuts, had, open := o.doubt(ctx)
		if !open {
			return
		}
		version, err := o.informer.newest(ctx)
		if err != nil {
			o.health.log.V(1).Info("getting the newest version failed; it is retried", "error", err.Error())
			again.pause(ctx, err)
			continue
		}
		o.mu.Lock()
		o.proven = max(o.proven, cuts)
		o.mu.Unlock()
		if older(version, had) {
			o.back(false, o.health.src, had, version)
		}
	}
}

// doubt returns how many watches were cut so far, and the version that was handed to the reflector last: events that come after
// the question prove nothing. Open: the server has to be asked.
func (o *observer) doubt(ctx context.Context) (cuts uint64, had string, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.proving = ctx.Err() == nil && o.proven < o.cuts
	return o.cuts, o.handed, o.proving
}
