// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
)

const (
	// unreadyFor is how long a workload has been unready when its newest Pod is read.
	unreadyFor = 10 * time.Second
	// readsAgain is the time after which the Pod is read again; after that, only a reconcile for another cause reads it.
	readsAgain = time.Minute
	// mostPods is the most Pods of a workload that are read to find the newest. Of a larger workload, it is the newest of these.
	mostPods = 500
)

// unreadyChild is what is remembered of a workload that is not ready.
type unreadyChild struct {
	since, read time.Time
	// pod is why its newest Pod is not ready; zero if that is not known.
	pod dsl.Readiness
}

// noteUnready notes the workloads that are not ready, and has the reconcile return to them after some time.
func (p *run) noteUnready(st State) State {
	all, _ := p.family.Reader().Shared().All() // while they cannot be read, the condition says so
	for _, child := range all {
		uid := child.Object.GetUID()
		if _, known := p.memory.Unready[uid]; known || !runsPods(child.Object) {
			continue
		}
		if is := p.childState(child); is.Unwanted || is.Ready {
			continue
		}
		if p.memory.Unready == nil {
			p.memory.Unready = map[types.UID]unreadyChild{}
		}
		p.memory.Unready[uid] = unreadyChild{since: p.Now}
		st.Due = st.Due.Sooner(unreadyFor, queue.Due)
	}
	return st
}

// readPods reads the newest Pod of each workload that has been unready for some time: the workload itself does not say why its Pods do
// not run. The right to do so is optional, so without it there is only less to say.
func (p *run) readPods(ctx context.Context, st State) State {
	before := p.memory.Unready
	if len(before) == 0 {
		return st
	}
	p.memory.Unready = nil
	all, _ := p.family.Reader().Shared().All()
	for _, child := range all {
		uid := child.Object.GetUID()
		one, known := before[uid]
		if is := p.childState(child); !known || is.Unwanted || is.Ready {
			continue
		}
		wait := unreadyFor - p.Now.Sub(one.since)
		if wait <= 0 && p.Now.Sub(one.read) >= readsAgain {
			if one.read.IsZero() {
				wait = readsAgain
			}
			one.read, one.pod = p.Now, p.newestPod(ctx, child.Object)
		}
		if wait > 0 {
			st.Due = st.Due.Sooner(wait, queue.Due)
		}
		if p.memory.Unready == nil {
			p.memory.Unready = map[types.UID]unreadyChild{}
		}
		p.memory.Unready[uid] = one
	}
	return st
}

// runsPods reports whether an object is a workload that selects its Pods.
func runsPods(o *unstructured.Unstructured) bool {
	switch o.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Group: "batch", Kind: "Job"}:
		return true
	}
	return false
}

// newestPod returns why the newest Pod of a workload is not ready; zero if it is ready, or cannot be read.
func (p *run) newestPod(ctx context.Context, workload *unstructured.Unstructured) (out dsl.Readiness) {
	selector := metav1.LabelSelector{}
	tree, _, _ := unstructured.NestedMap(workload.Object, "spec", "selector")
	if len(tree) == 0 || runtime.DefaultUnstructuredConverter.FromUnstructured(tree, &selector) != nil {
		return out
	}
	list, err := p.Others.Clients.Client(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, workload.GetNamespace()).List(ctx, metav1.ListOptions{
		LabelSelector: metav1.FormatLabelSelector(&selector), Limit: mostPods,
	})
	if err != nil {
		return out
	}
	var newest *unstructured.Unstructured
	for i := range list.Items {
		if one := &list.Items[i]; newest == nil || one.GetCreationTimestamp().After(newest.GetCreationTimestamp().Time) {
			newest = one
		}
	}
	if newest == nil {
		return out
	}
	if out, err = dsl.ReadinessOf(newest); err != nil || out.Ready {
		return dsl.Readiness{}
	}
	return out
}

// withPod returns the readiness of a child with the reason of its newest Pod.
func (p *run) withPod(child *unstructured.Unstructured, is dsl.Readiness) dsl.Readiness {
	if pod := p.memory.Unready[child.GetUID()].pod; pod.Reason != "" && !is.Ready {
		is.Reason, is.Message, is.Stage = pod.Reason, is.Message+"; "+pod.Message, is.Stage+"; "+pod.Stage
	}
	return is
}
