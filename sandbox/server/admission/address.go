// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The ports of nodes that Services have.
const firstNodePort, lastNodePort = 30000, 32767

// network is that of the addresses of Services. The first ones are left to a cluster's own Services.
func network() (all netip.Prefix, first netip.Addr) {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96, 0, 0}), 16), netip.AddrFrom4([4]byte{10, 96, 0, 11})
}

// Allocate gives a Service the address and the ports of nodes that it lacks. It returns an error if those that the Service asks for
// belong to another one. A real server does so after admission, before it checks the object.
func (c *Chain) Allocate(r Request) error {
	if r.Resource != services() || r.Subresource != "" {
		return nil
	}
	service, err := read[corev1.Service](r.Object)
	if err != nil {
		return internal(err)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName || r.Old != nil && reflect.DeepEqual(r.Old.Object["spec"], r.Object.Object["spec"]) {
		return nil
	}
	taken, err := c.allocated(r)
	if err != nil {
		return err
	}
	if err := taken.giveAddress(&service.Spec); err != nil {
		return apierrors.NewInvalid(r.Kind, service.Name, field.ErrorList{err})
	}
	if err := ownerless(service); err != nil {
		return apierrors.NewInvalid(r.Kind, service.Name, field.ErrorList{err})
	}
	if err := taken.givePorts(&service.Spec); err != nil {
		return apierrors.NewInvalid(r.Kind, service.Name, field.ErrorList{err})
	}
	if err := taken.giveHealthPort(&service.Spec); err != nil {
		return apierrors.NewInternalError(err)
	}
	writeAllocated(r.Object, &service.Spec)
	return nil
}

// ownerless returns the error for the address of a Service without a name: a real server has an object for the address, which names
// the Service.
func ownerless(s *corev1.Service) *field.Error {
	if s.Name != "" || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	return field.Invalid(field.NewPath("spec", "clusterIPs"), []string{""}, fmt.Sprintf(
		"failed to allocate IP: IPAddress.networking.k8s.io %q is invalid: spec.parentRef.name: Required value", s.Spec.ClusterIP))
}

// writeAllocated writes the address and the ports of nodes of a Service into its object.
func writeAllocated(o *unstructured.Unstructured, s *corev1.ServiceSpec) {
	spec, _ := o.Object["spec"].(map[string]any)
	if len(s.ClusterIPs) > 0 {
		spec["clusterIP"] = s.ClusterIP
		addresses := make([]any, len(s.ClusterIPs))
		for i, address := range s.ClusterIPs {
			addresses[i] = address
		}
		spec["clusterIPs"] = addresses
	}
	if s.HealthCheckNodePort != 0 {
		spec["healthCheckNodePort"] = int64(s.HealthCheckNodePort)
	}
	ports, _ := spec["ports"].([]any)
	for i := range ports {
		if port, is := ports[i].(map[string]any); is && s.Ports[i].NodePort != 0 {
			port["nodePort"] = int64(s.Ports[i].NodePort)
		}
	}
}

// allocations are the addresses and the ports of nodes of other Services.
type allocations struct {
	addresses map[string]bool
	ports     map[int32]bool
	// own are those of the stored Service, and fresh says that there is none.
	own   corev1.ServiceSpec
	fresh bool
}

// allocated returns what is not free for a Service.
func (c *Chain) allocated(r Request) (*allocations, error) {
	out := &allocations{addresses: map[string]bool{}, ports: map[int32]bool{}, fresh: r.Old == nil}
	if r.Old != nil {
		old, err := read[corev1.Service](r.Old)
		if err != nil {
			return nil, internal(err)
		}
		out.own = old.Spec
	}
	for _, o := range c.objects.List(services(), "") {
		if o.GetNamespace() == r.Namespace && o.GetName() == r.Object.GetName() {
			continue
		}
		spec, _ := o.Object["spec"].(map[string]any)
		addresses, _ := spec["clusterIPs"].([]any)
		for _, address := range addresses {
			out.addresses[fmt.Sprint(address)] = true
		}
		ports, _ := spec["ports"].([]any)
		for _, port := range ports {
			fields, _ := port.(map[string]any)
			number, _ := fields["nodePort"].(int64)
			out.ports[int32(number)] = true
		}
		health, _ := spec["healthCheckNodePort"].(int64)
		out.ports[int32(health)] = true
	}
	return out, nil
}

var (
	errNetwork      = errors.New("the provided network does not match the current range")
	errPortTaken    = errors.New("provided port is already allocated")
	errAddressTaken = errors.New("provided IP is already allocated")
)

// giveAddress gives a Service an address, or checks the one that it asks for.
func (a *allocations) giveAddress(s *corev1.ServiceSpec) *field.Error {
	all, address := network()
	if s.ClusterIP == "" && len(s.ClusterIPs) == 0 {
		for a.addresses[address.String()] {
			address = address.Next()
		}
		s.ClusterIP, s.ClusterIPs = address.String(), []string{address.String()}
		return nil
	}
	asked, err := netip.ParseAddr(s.ClusterIP)
	if err != nil || len(a.own.ClusterIPs) > 0 {
		return nil // it is headless or stays as it is, or the check of the object says what is wrong
	}
	why := errNetwork
	switch {
	case !all.Contains(asked):
	case a.addresses[s.ClusterIP]:
		why = errAddressTaken
	default:
		return nil
	}
	return field.Invalid(field.NewPath("spec", "clusterIPs"), s.ClusterIPs, fmt.Sprintf("failed to allocate IP %s: %s", s.ClusterIP, why))
}

// checkPorts returns why a Service cannot have the ports of nodes that it asks for.
func (a *allocations) checkPorts(ports []corev1.ServicePort) *field.Error {
	for i, p := range ports {
		owned := slices.ContainsFunc(a.own.Ports, func(own corev1.ServicePort) bool { return own.NodePort == p.NodePort })
		if p.NodePort == 0 || owned {
			continue
		}
		if err := a.isFree(p.NodePort); err != nil {
			return field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), p.NodePort, err.Error())
		}
	}
	return nil
}

// isFree returns why a Service cannot have a port of nodes, or nil.
func (a *allocations) isFree(port int32) error {
	switch {
	case port < firstNodePort || port > lastNodePort:
		return fmt.Errorf("provided port is not in the valid range. The range of valid ports is %d-%d", firstNodePort, lastNodePort)
	case a.ports[port]:
		return errPortTaken
	}
	return nil
}

// giveHealthPort gives a load balancer the port by which it learns which nodes have Pods, if it begins to need one.
func (a *allocations) giveHealthPort(s *corev1.ServiceSpec) error {
	needs := func(s *corev1.ServiceSpec) bool {
		return s.Type == corev1.ServiceTypeLoadBalancer && s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	}
	switch {
	case !needs(s) || needs(&a.own):
	case s.HealthCheckNodePort != 0:
		if err := a.isFree(s.HealthCheckNodePort); err != nil {
			return fmt.Errorf("failed to allocate requested HealthCheck NodePort %d: %w", s.HealthCheckNodePort, err)
		}
	default:
		port := int32(firstNodePort)
		for a.ports[port] {
			port++
		}
		s.HealthCheckNodePort = port
	}
	return nil
}

// givePorts gives the ports of a Service ports of nodes if its type has them, or checks those that it asks for.
func (a *allocations) givePorts(s *corev1.ServiceSpec) *field.Error {
	balanced := s.Type == corev1.ServiceTypeLoadBalancer
	if !balanced && s.Type != corev1.ServiceTypeNodePort {
		return nil
	}
	if err := a.checkPorts(s.Ports); err != nil {
		return err
	}
	for _, p := range s.Ports {
		a.ports[p.NodePort] = true
	}
	if !balanced || s.AllocateLoadBalancerNodePorts == nil || *s.AllocateLoadBalancerNodePorts {
		a.choosePorts(s.Ports)
	}
	return nil
}

// choosePorts chooses ports of nodes for ports that have none. Ports of a new Service that have one number, such as that of DNS with two
// protocols, share a port of nodes.
func (a *allocations) choosePorts(ports []corev1.ServicePort) {
	shared := map[int32]int32{}
	for _, p := range ports {
		if shared[p.Port] == 0 && a.fresh {
			shared[p.Port] = p.NodePort
		}
	}
	next := int32(firstNodePort)
	for i := range ports {
		p := &ports[i]
		if p.NodePort == 0 {
			p.NodePort = shared[p.Port]
		}
		if p.NodePort != 0 {
			continue
		}
		for a.ports[next] {
			next++
		}
		p.NodePort, a.ports[next] = next, true
		if a.fresh {
			shared[p.Port] = next
		}
	}
}
