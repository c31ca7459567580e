// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// prove asks for the server's newest version once after a watch was cut. A watch that is resumed at a version the server
// has yet to reach stays silent. A failed request is repeated until the source lists.
func (o *observer) prove(ctx context.Context) {
	if o.informer != nil && o.era.doubtful() {
		o.streams.Go(func() { o.ask(ctx) })
	}
}

// ask sends the requests of prove.
func (o *observer) ask(ctx context.Context) {
	again := pace{}
	for {
		cuts, had, open := o.era.recheck(ctx)
		if !open {
			return
		}
		version, err := o.informer.newest(ctx)
		if err != nil {
			o.health.log.V(1).Info("getting the newest version failed; it is retried", "error", err.Error())
			again.pause(ctx, err)
			continue
		}
		o.era.prove(cuts)
		if older(version, had) {
			o.back(false, o.health.src, had, version)
		}
	}
}
