// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func services() schema.GroupResource { return schema.GroupResource{Resource: "services"} }

// amount is the amount of a resource.
type amount = resource.Quantity

func zero() amount { return *resource.NewQuantity(0, resource.DecimalSI) }

func one() amount { return *resource.NewQuantity(1, resource.DecimalSI) }

// ofClass stands between the name of a StorageClass and a resource in the name of what a quota limits.
const ofClass = ".storageclass.storage.k8s.io/"

// use is how much an object uses of what quotas limit.
type use struct {
	amounts corev1.ResourceList
	// of is the Pod; nil for other objects.
	of *corev1.Pod
}

// claim counts a claim and its storage, also by its class.
func (u *use) claim(o *unstructured.Unstructured) error {
	claim, err := read[corev1.PersistentVolumeClaim](o)
	if err != nil {
		return err
	}
	set := func(name corev1.ResourceName, n amount) {
		u.amounts[name] = n
		if class := classOf(claim); class != "" {
			u.amounts[corev1.ResourceName(class+ofClass)+name] = n
		}
	}
	set(corev1.ResourcePersistentVolumeClaims, one())
	if n, found := claim.Spec.Resources.Requests[corev1.ResourceStorage]; found {
		n = n.DeepCopy()
		n.RoundUp(0)
		set(corev1.ResourceRequestsStorage, n)
	}
	return nil
}

func classOf(claim *corev1.PersistentVolumeClaim) string {
	if class, found := claim.Annotations[corev1.BetaStorageClassAnnotation]; found {
		return class
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

// service counts a Service, and what its type takes outside of the cluster.
func (u *use) service(o *unstructured.Unstructured) error {
	service, err := read[corev1.Service](o)
	if err != nil {
		return err
	}
	s := &service.Spec
	nodePorts, balancers := 0, int64(0)
	switch {
	case s.Type == corev1.ServiceTypeLoadBalancer && s.AllocateLoadBalancerNodePorts != nil && !*s.AllocateLoadBalancerNodePorts:
		for _, p := range s.Ports {
			if p.NodePort != 0 {
				nodePorts++
			}
		}
	case s.Type == corev1.ServiceTypeLoadBalancer, s.Type == corev1.ServiceTypeNodePort:
		nodePorts = len(s.Ports)
	}
	if s.Type == corev1.ServiceTypeLoadBalancer {
		balancers = 1
	}
	u.amounts[corev1.ResourceServices] = one()
	u.amounts[corev1.ResourceServicesNodePorts] = *resource.NewQuantity(int64(nodePorts), resource.DecimalSI)
	u.amounts[corev1.ResourceServicesLoadBalancers] = *resource.NewQuantity(balancers, resource.DecimalSI)
	return nil
}

// pod counts a Pod and, until it has ended, its requests and limits.
func (u *use) pod(o *unstructured.Unstructured) (err error) {
	if u.of, err = read[corev1.Pod](o); err != nil {
		return err
	}
	if phase := u.of.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		return nil
	}
	s := &u.of.Spec
	requests, limits := podAmounts(s, requested), podAmounts(s, limited)
	add(requests, s.Overhead)
	for name, n := range s.Overhead {
		if is, found := limits[name]; found {
			is.Add(n)
			limits[name] = is
		}
	}
	add(u.amounts, named(requests, limits))
	u.amounts[corev1.ResourcePods] = one()
	return nil
}

// named returns requests and limits by the names that quotas have for them.
func named(requests, limits corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, n := range requests {
		native := !strings.Contains(string(name), "/") || strings.Contains(string(name), "kubernetes.io/")
		out[corev1.DefaultResourceRequestsPrefix+name] = n
		if native { // others have no short name
			out[name] = n
		}
	}
	for name, n := range limits {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			out["limits."+name] = n
		}
	}
	return out
}

// missing returns which of the names of a quota containers have to specify and do not, with the containers. That goes for CPU and
// memory.
func (u *use) missing(names []corev1.ResourceName) string {
	if u.of == nil || u.of.Spec.Resources != nil {
		return ""
	}
	var out []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
			corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory:
		default:
			continue
		}
		var containers []string
		for _, c := range slices.Concat(u.of.Spec.Containers, u.of.Spec.InitContainers) {
			if _, found := named(c.Resources.Requests, c.Resources.Limits)[name]; !found {
				containers = append(containers, c.Name)
			}
		}
		if slices.Sort(containers); len(containers) > 0 {
			out = append(out, string(name)+" for: "+strings.Join(containers, ","))
		}
	}
	return strings.Join(out, "; ")
}
