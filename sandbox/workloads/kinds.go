// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a row of the table: a kind of objects, and the function that brings one of them a step further.
type kind struct {
	name     string
	resource schema.GroupVersionResource
	blank    func() object
	rank     rank
	// step returns an error if the object has to be looked at again. It writes nothing if nothing is to be done.
	step func(*loop, object, Rule) error
	// held is step for objects that a rule holds; nil means that it does nothing.
	held func(*loop, object) error
}

// rank says which objects come first when several are due: those that others count.
type rank int

const (
	counted rank = iota // count no others
	owners              // count Pods
	heads               // count owners of Pods
	ranks   int  = iota
)

// table returns the kinds that come alive.
func table() []kind {
	core, apps, batch := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	return []kind{
		row(core, "Node", "nodes", func() *corev1.Node { return &corev1.Node{} }, stepNode),
		row(apps, "Deployment", "deployments", func() *appsv1.Deployment { return &appsv1.Deployment{} }, stepDeployment).ranking(heads),
		row(apps, "ReplicaSet", "replicasets", func() *appsv1.ReplicaSet { return &appsv1.ReplicaSet{} }, stepReplicaSet).ranking(owners),
		row(apps, "ControllerRevision", "controllerrevisions", func() *appsv1.ControllerRevision { return &appsv1.ControllerRevision{} }, stepRevision),
		row(apps, "StatefulSet", "statefulsets", func() *appsv1.StatefulSet { return &appsv1.StatefulSet{} }, stepStatefulSet).ranking(owners),
		row(apps, "DaemonSet", "daemonsets", func() *appsv1.DaemonSet { return &appsv1.DaemonSet{} }, stepDaemonSet).ranking(owners),
		row(batch, "CronJob", "cronjobs", func() *batchv1.CronJob { return &batchv1.CronJob{} }, stepCronJob).ranking(heads),
		row(batch, "Job", "jobs", func() *batchv1.Job { return &batchv1.Job{} }, stepJob).ranking(owners),
		row(core, "PersistentVolume", "persistentvolumes", func() *corev1.PersistentVolume { return &corev1.PersistentVolume{} }, stepVolume),
		row(core, "PersistentVolumeClaim", "persistentvolumeclaims", func() *corev1.PersistentVolumeClaim { return &corev1.PersistentVolumeClaim{} }, stepClaim).keeping(holdClaim),
		row(core, "Service", "services", func() *corev1.Service { return &corev1.Service{} }, stepService).ranking(owners),
		row(networkingv1.SchemeGroupVersion, "Ingress", "ingresses", func() *networkingv1.Ingress { return &networkingv1.Ingress{} }, stepIngress),
		row(core, "Pod", "pods", func() *corev1.Pod { return &corev1.Pod{} }, stepPod).keeping(holdPod),
		row(policyv1.SchemeGroupVersion, "PodDisruptionBudget", "poddisruptionbudgets", func() *policyv1.PodDisruptionBudget { return &policyv1.PodDisruptionBudget{} }, stepBudget).ranking(owners),
	}
}

// rareTable returns the kinds that come alive on a server with all kinds of a usual cluster.
func rareTable() []kind {
	return []kind{
		row(discoveryv1.SchemeGroupVersion, "EndpointSlice", "endpointslices", func() *discoveryv1.EndpointSlice { return &discoveryv1.EndpointSlice{} }, stepNothing),
		row(corev1.SchemeGroupVersion, "Endpoints", "endpoints", func() *endpoints { return &endpoints{} }, stepNothing),
		row(storagev1.SchemeGroupVersion, "VolumeAttributesClass", "volumeattributesclasses", func() *storagev1.VolumeAttributesClass { return &storagev1.VolumeAttributesClass{} }, stepAttributesClass),
	}
}

// stepNothing is the step of objects that others write.
func stepNothing[T object](*loop, T, Rule) error { return nil }

// Resources returns the resources whose objects come alive.
func Resources() (out []schema.GroupVersionResource) {
	for _, k := range table() {
		out = append(out, k.resource)
	}
	return out
}

func row[T object](version schema.GroupVersion, name, plural string, blank func() T, step func(*loop, T, Rule) error) kind {
	return kind{
		name: name, resource: version.WithResource(plural), blank: func() object { return blank() },
		step: func(l *loop, o object, rule Rule) error { return step(l, o.(T), rule) },
	}
}

func (k kind) ranking(r rank) kind {
	k.rank = r
	return k
}

func (k kind) keeping(held func(*loop, object) error) kind {
	k.held = held
	return k
}

// listOf returns objects of a cache as what they are.
func listOf[T object](from []object) []T {
	out := make([]T, len(from))
	for i, o := range from {
		out[i] = o.(T)
	}
	return out
}
