// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/engine/cluster/kube"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// search finds the process of an operator in a cluster.
type search struct {
	config *rest.Config
	client *kube.Clients
	home   string
	to     Target
}

// holding is a Lease of an operator.
type holding struct {
	operator string
	lease    *coordinationv1.Lease
}

func (h holding) String() string {
	return fmt.Sprintf("operator %s (Lease %s/%s)", h.operator, h.lease.Namespace, h.lease.Name)
}

// identity is the process that holds the Lease; empty if none does.
func (h holding) identity() string {
	if h.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *h.lease.Spec.HolderIdentity
}

// pod is the name of the Pod of that process, if it runs in one: in mode life the Pod owns the Lease, otherwise its name begins the
// identity.
func (h holding) pod() string {
	for _, owner := range h.lease.OwnerReferences {
		if owner.Kind == "Pod" {
			return owner.Name
		}
	}
	name, _, _ := strings.Cut(h.identity(), "_")
	return name
}

// late reports since when the Lease was not renewed, if its time is over. Clocks may differ by a minute.
func (h holding) late() (at time.Time, late bool) {
	renewed, seconds := h.lease.Spec.RenewTime, h.lease.Spec.LeaseDurationSeconds
	if len(h.lease.OwnerReferences) > 0 || renewed == nil || seconds == nil {
		return time.Time{}, false
	}
	return renewed.Time, time.Since(renewed.Time) > time.Duration(*seconds)*time.Second+time.Minute
}

// held reports whether a process holds the Lease, as far as the Lease says.
func (h holding) held() bool {
	_, late := h.late()
	return h.identity() != "" && !late
}

// open finds the process.
func (s *search) open(ctx context.Context) (*Process, error) {
	if s.to.Pod != "" {
		return s.byPod(ctx, cmp.Or(s.to.Namespace, s.home), s.to.Pod, s.to.Operator)
	}
	found, err := s.find(ctx)
	if apierrors.IsForbidden(err) && s.to.Namespace == "" {
		return nil, fmt.Errorf("finding the operator: %w: set --%s to a namespace where you may list leases.coordination.k8s.io, or --%s", err, NamespaceFlag, PodFlag)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the operator: %w", err)
	}
	if found == nil { // a process without a Lease may be on this machine
		p, err := at(ops.DebugAddress, s.to.Operator)
		if err == nil {
			err = p.try(ctx)
		}
		if err != nil {
			return nil, s.nothing()
		}
		return p, nil
	}
	if found.identity() == "" {
		return nil, fmt.Errorf("finding the operator: no process leads: Lease %s/%s has no holder", found.lease.Namespace, found.lease.Name)
	}
	p, err := s.byPod(ctx, found.lease.Namespace, found.pod(), found.operator)
	if apierrors.IsNotFound(err) {
		return s.here(ctx, *found)
	}
	return p, err
}

// nothing is the error if no Lease was found, and nothing answers on this machine.
func (s *search) nothing() error {
	what, where := "an operator of Handwerk", ""
	if s.to.Operator != "" {
		what = "operator " + s.to.Operator
	}
	if s.to.Namespace != "" {
		where = " in namespace " + s.to.Namespace
	}
	return fmt.Errorf("finding the operator: no Lease of %s is there%s, and none answers on %s of this machine: set --%s and --%s, or --%s for one without leader election, or --%s",
		what, where, ops.DebugAddress, OperatorFlag, NamespaceFlag, PodFlag, AddressFlag)
}

// here returns the leader if it is a process on this machine: no Pod has its name.
func (s *search) here(ctx context.Context, h holding) (*Process, error) {
	if at, late := h.late(); late {
		return nil, fmt.Errorf("finding the operator: no process leads: the Lease %s/%s was last renewed at %s, by %s",
			h.lease.Namespace, h.lease.Name, at.UTC().Format(time.RFC3339), h.identity())
	}
	p, err := at(ops.DebugAddress, h.operator)
	if err != nil {
		return nil, err
	}
	p.identity = h.identity()
	if err := p.try(ctx); err != nil {
		return nil, fmt.Errorf("finding the operator: %s leads, namespace %s has no Pod of that name, and it is not the process on %s of this machine: where it runs, use --%s",
			h.identity(), h.lease.Namespace, ops.DebugAddress, AddressFlag)
	}
	return p, nil
}

// try returns an error unless the process answers.
func (p *Process) try(ctx context.Context) error {
	return p.Ask(ctx, "status", nil, &struct{}{})
}

// find returns the operator's Lease, nil if the cluster has no such Lease.
func (s *search) find(ctx context.Context) (*holding, error) {
	leases, err := s.leases(ctx)
	if err != nil {
		return nil, err
	}
	var all []holding
	for i := range leases {
		h := holding{operatorOf(&leases[i]), &leases[i]}
		if s.wanted(&h) {
			all = append(all, h)
		}
	}
	if held := slices.DeleteFunc(slices.Clone(all), func(h holding) bool { return !h.held() }); len(held) > 0 {
		all = held
	}
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return &all[0], nil
	}
	var names []string
	for _, h := range all {
		names = append(names, h.String())
	}
	return nil, fmt.Errorf("several are there: choose one by --%s and --%s: %s", OperatorFlag, NamespaceFlag, strings.Join(names, ", "))
}

// wanted reports whether a Lease is that of the target. One whose name is known need not say whose it is.
func (s *search) wanted(h *holding) bool {
	if s.to.Lock != "" && h.lease.Name == s.to.Lock {
		h.operator = cmp.Or(s.to.Operator, h.operator)
		return true
	}
	return h.operator != "" && (s.to.Operator == "" || h.operator == s.to.Operator)
}

// operatorOf returns the name of the operator whose lock a Lease is, empty if it is not one of Handwerk.
func operatorOf(lease *coordinationv1.Lease) string {
	for key := range lease.Annotations {
		prefix, ours := strings.CutSuffix(key, "/scope")
		name, domain, _ := strings.Cut(prefix, ".")
		if ours && (domain == bookkeeping.Domain || lease.Name == name+"-leader") {
			return name
		}
	}
	return ""
}

// leases returns the Leases of the target's namespace, otherwise those of all namespaces, and if the user may not list these, of
// the user's namespace.
func (s *search) leases(ctx context.Context) ([]coordinationv1.Lease, error) {
	list, err := s.client.CoordinationV1().Leases(s.to.Namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) && s.to.Namespace == "" && s.home != "" {
		if own, other := s.client.CoordinationV1().Leases(s.home).List(ctx, metav1.ListOptions{}); other == nil {
			return own.Items, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// byPod returns the process in a Pod.
func (s *search) byPod(ctx context.Context, namespace, name, operator string) (*Process, error) {
	pod, err := s.client.Pod(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("finding the operator: reading its Pod %s/%s: %w", namespace, name, err)
	}
	if pod.Status.Phase != corev1.PodRunning {
		return nil, fmt.Errorf("finding the operator: its Pod %s/%s does not run: it is %s", namespace, name, cmp.Or(string(pod.Status.Phase), "unknown"))
	}
	port, err := portOf(pod)
	if err != nil {
		return nil, fmt.Errorf("finding the operator: Pod %s/%s: %w", namespace, name, err)
	}
	return s.forward(ctx, namespace, name, port, operator)
}

// portOf returns the port on which the operator in a Pod is asked: that of the flag or the variable that one of its containers has,
// or the default.
func portOf(pod *corev1.Pod) (string, error) {
	address := ops.DebugAddress
	for _, c := range pod.Spec.Containers {
		args := slices.Concat(c.Command, c.Args)
		for _, v := range c.Env {
			if v.Name == Variable && v.Value != "" {
				address = v.Value
			}
		}
		for i, arg := range args {
			if value, found := strings.CutPrefix(arg, "--"+ops.DebugFlag+"="); found {
				address = value
			} else if arg == "--"+ops.DebugFlag && i+1 < len(args) {
				address = args[i+1]
			}
		}
	}
	host, port, err := net.SplitHostPort(address)
	switch {
	case address == "" || address == "0":
		return "", errors.New("it cannot be asked: --" + ops.DebugFlag + " is 0")
	case strings.HasPrefix(address, "unix:"):
		return "", fmt.Errorf("it is asked on a Unix socket (--%s=%s): run this command in the Pod, with --%s=%s", ops.DebugFlag, address, AddressFlag, address)
	case err != nil:
		return "", fmt.Errorf("--%s=%s is no address", ops.DebugFlag, address)
	case !ops.Loopback(host):
		return "", fmt.Errorf("it is asked by TLS with a token (--%s=%s): curl it, or take an address on loopback, to which a port can be forwarded", ops.DebugFlag, address)
	case port == "0":
		return "", fmt.Errorf("its port is not known (--%s=%s): its log says it in the line \"starting\"", ops.DebugFlag, address)
	}
	return port, nil
}
