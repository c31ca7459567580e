// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package workloads makes the workloads of a cluster in memory come alive, as kube-controller-manager, the scheduler
// and the kubelet do.
//
//	Node                   the nodes exist and are ready
//	Deployment             ReplicaSets by its template; rolling update, Recreate, paused, conditions, revisions
//	ReplicaSet             as many Pods as it says
//	StatefulSet            Pods and PersistentVolumeClaims by ordinals, in order
//	DaemonSet              a Pod on each node
//	Job                    Pods up to its completions; suspend, deadlines, back-off, Complete or Failed
//	CronJob                Jobs on time
//	Pod                    on a node, then Running, then Ready; a Pod of a Job succeeds; a deleted one ends
//	PersistentVolumeClaim  Bound to a PersistentVolume
//	Service                a cluster IP, EndpointSlices and Endpoints; for a load balancer an address
//	Ingress                an address
//	PodDisruptionBudget    its status
//
// A [Plan] says what becomes of which objects, and may change while they run: they become ready at once or after a
// while, fail, or are held as they are.
//
// The controllers are clients like any others: they work with each API server that keeps Pods where no kubelet is.
// They write only when something differs, and an owner says once what has changed below it at one instant: its Pods come
// first, and its status when they have nothing more to do. On objects that they did not make, they write the status and what the
// controllers of a cluster write: the node of a Pod, the volume of a claim, the cluster IP of a Service without one.
// They set owner references, and leave garbage collection to the server.
package workloads
