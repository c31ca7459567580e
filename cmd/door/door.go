// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package door finds the process of an operator that leads, and asks it questions.
//
// It reads the operator's Lease, and forwards a port to the leader's Pod through the API server, which decides whether the user
// may (pods/portforward). Nothing of the user's credentials gets to the Pod, and no port is opened on the user's machine.
package door

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/engine/cluster/kube"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// The flags of the commands that ask. Errors name them.
const (
	AddressFlag   = "address"
	OperatorFlag  = "operator"
	NamespaceFlag = "operator-namespace"
	PodFlag       = "pod"
)

// Variable is the environment variable of [ops.DebugFlag], which the container of an operator may have.
const Variable = "HANDWERK_DEBUG_BIND_ADDRESS"

// ErrAddress says that a text is no address.
var ErrAddress = errors.New("want host:port, or unix:/path")

// Target says whom to ask. Without anything, it is the only operator in the cluster that leads.
type Target struct {
	// Address, if set, is asked: host:port, or unix:/path. All else does not matter then.
	Address string
	// Operator is the operator's name.
	Operator string
	// Lock is the name of its Lease, if that is known.
	Lock string
	// Namespace is that of the Lease, and of the Pod.
	Namespace string
	// Pod, if set, is asked, whether it leads or not.
	Pod string
	// Unlocked: the operator has no Lease, so it is a process on this machine.
	Unlocked bool
}

// Process is a process of an operator that can be asked.
type Process struct {
	client *http.Client
	// where is the process, for people.
	where string
	// operator and identity are those that must answer; empty for any.
	operator, identity string
	closes             func()
}

// Open finds a process. The config leads to the API server, and namespace is that of its context; both are not needed if the target
// has an address. Close must be called in the end.
func Open(ctx context.Context, config *rest.Config, namespace string, to Target) (*Process, error) {
	if to.Address != "" {
		return at(to.Address, to.Operator)
	}
	if to.Unlocked && to.Pod == "" {
		return at(ops.DebugAddress, to.Operator)
	}
	client, err := kube.New(config)
	if err != nil {
		return nil, fmt.Errorf("finding the operator: %w", err)
	}
	s := &search{config: config, client: client, home: namespace, to: to}
	return s.open(ctx)
}

// Home returns the namespace in which an operator runs: that of its Lease. The config leads to the API server, and namespace is that
// of its context, which counts where the user may not list the Leases of all namespaces.
func Home(ctx context.Context, config *rest.Config, namespace string, to Target) (string, error) {
	client, err := kube.New(config)
	if err != nil {
		return "", fmt.Errorf("finding operator %s: %w", to.Operator, err)
	}
	s := &search{config: config, client: client, home: namespace, to: to}
	found, err := s.find(ctx)
	switch {
	case err == nil && found != nil:
		return found.lease.Namespace, nil
	case err == nil:
		err = errors.New("no Lease of this operator is there, which says where it runs")
	case !apierrors.IsForbidden(err):
		return "", fmt.Errorf("finding operator %s: %w", to.Operator, err)
	}
	return "", fmt.Errorf("finding operator %s: %w: set --%s to the namespace of its Pods, or to %s if it runs on this machine", to.Operator, err, NamespaceFlag, cmp.Or(namespace, metav1.NamespaceDefault))
}

// at returns the process at an address.
func at(address, operator string) (*Process, error) {
	network, target := "tcp", address
	if path, socket := strings.CutPrefix(address, "unix:"); socket {
		network, target = "unix", path
	} else if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("asking at %s: %w (--%s)", address, ErrAddress, AddressFlag)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, target)
	}
	return newProcess(dial, address, operator), nil
}

func newProcess(dial func(ctx context.Context, network, address string) (net.Conn, error), where, operator string) *Process {
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	return &Process{client: &http.Client{Transport: transport}, where: where, operator: operator, closes: func() {}}
}

// Close ends the way to the process.
func (p *Process) Close() { p.closes() }

const (
	// patience is how long an answer may take.
	patience = 30 * time.Second
	// mostAnswer is the greatest length of an answer.
	mostAnswer = 64 << 20
)

// Ask asks a question, and decodes the answer. An error of the process is an [apierrors.StatusError].
func (p *Process) Ask(ctx context.Context, question string, values url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	where := url.URL{Scheme: "http", Host: "localhost", Path: ops.DebugPath + question, RawQuery: values.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return fmt.Errorf("asking at %s: %w", p.where, err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("asking at %s: %w", p.where, plain(err))
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("asking at %s: %w", p.where, err)
	}
	if err := p.known(response, body); err != nil {
		return fmt.Errorf("asking at %s: %w", p.where, err)
	}
	if response.StatusCode != http.StatusOK {
		status := metav1.Status{}
		if json.Unmarshal(body, &status) == nil && status.Message != "" {
			return &apierrors.StatusError{ErrStatus: status}
		}
		return fmt.Errorf("asking at %s: %s", p.where, response.Status)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("asking at %s: reading the answer: %w", p.where, err)
	}
	return nil
}

// known returns an error if another process has answered than the one that is looked for.
func (p *Process) known(response *http.Response, body []byte) error {
	operator, identity := response.Header.Get(ops.OperatorHeader), response.Header.Get(ops.ProcessHeader)
	switch {
	case operator == "":
		first, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
		return fmt.Errorf("no operator of Handwerk answers, but something else: %s %.100s", response.Status, first)
	case p.operator != "" && operator != p.operator:
		return fmt.Errorf("operator %s answers, not %s; the log of %s says its address in the line \"starting\", for --%s", operator, p.operator, p.operator, AddressFlag)
	case p.identity != "" && identity != p.identity:
		return fmt.Errorf("process %s answers, not %s, which leads", identity, p.identity)
	}
	return nil
}

// plain returns an error of a request without the URL, which is made up.
func plain(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	if said, ok := errors.AsType[refusal](err); ok {
		return said // net/http may put a word of its own before it
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w; no operator listens there: its log says its address in the line \"starting\" (debug)", err)
	}
	return err
}
