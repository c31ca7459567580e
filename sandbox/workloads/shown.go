// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shown waits until the watch shows what an own write has made of an object whose answer does not have it. What comes next
// would see the object as it was. Its limit is by the clock of the machine, as it waits for another goroutine.
func (l *loop) shown(row string, o metav1.Object) {
	limit := time.NewTimer(moment)
	defer limit.Stop()
	for {
		is := l.caches[row].get(o.GetNamespace(), o.GetName())
		if is == nil || is.GetUID() != o.GetUID() || is.GetResourceVersion() != o.GetResourceVersion() && !goes(is) {
			l.queue.add(key{row, o.GetNamespace(), o.GetName()}) // what is above it comes later
			return
		}
		select {
		case <-l.queue.signal: // a change that is seen queues a key; the loop takes all that are due
		case <-limit.C:
			return
		case <-l.ctx.Done():
			return
		}
	}
}

// goes reports whether the server has nothing more to do with an object but to remove it.
func goes(o metav1.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return grace != nil && *grace == 0 && len(o.GetFinalizers()) == 0
}
