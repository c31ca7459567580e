// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/handwerk-dev/handwerk/samples/etcd/etcd"
)

// etcdNetwork is the network of the Pods of a namespace: a proxy by which processes reach others at the addresses that their Pods
// would have. It knows each change of membership.
type etcdNetwork struct {
	*httptest.Server
	mu sync.Mutex
	// hosts are the addresses of processes behind those of Pods, clients those of the members for clients, by Pod.
	hosts, clients map[string]string
	// changes are those that etcd has made, in order; open are those under way, overlaps those that began while another one was.
	changes        []string
	open, overlaps int
	// promoted are the members whose promotion is among the changes.
	promoted map[etcd.ID]bool
	// crash is called once, before the next answer to an added member is given; that answer is lost then.
	crash func()
}

func newEtcdNetwork(t *testing.T) *etcdNetwork {
	t.Helper()
	n := &etcdNetwork{hosts: map[string]string{}, clients: map[string]string{}, promoted: map[etcd.ID]bool{}}
	ways := &http.Transport{MaxIdleConnsPerHost: 8} // and no proxy
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Host = n.address(r.In.URL.Host) },
		Transport:     ways,
		FlushInterval: -1, // members talk in streams
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, isChange := strings.CutPrefix(r.URL.Path, "/v3/cluster/member/")
		switch {
		case n.address(r.URL.Host) == "":
			http.Error(w, "there is no "+r.URL.Host, http.StatusBadGateway)
		case isChange && kind != "list":
			n.change(w, r, kind, forward)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		ways.CloseIdleConnections()
		n.CloseClientConnections() // streams
		n.Close()
	})
	return n
}

// environment has a process use the network.
func (n *etcdNetwork) environment() []string {
	return []string{"HTTP_PROXY=" + n.URL, "http_proxy=" + n.URL, "NO_PROXY=", "no_proxy="}
}

func (n *etcdNetwork) address(host string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[host]
}

// attach gives the addresses of a Pod's process the names that it is known by, detach takes them away.
func (n *etcdNetwork) attach(pod, client string, hosts map[string]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clients[pod] = client
	maps.Copy(n.hosts, hosts)
}

func (n *etcdNetwork) detach(pod string, hosts map[string]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.clients, pod)
	for host := range hosts {
		delete(n.hosts, host)
	}
}

// members returns the addresses for clients by Pod.
func (n *etcdNetwork) members() map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.clients)
}

// made returns the changes so far.
func (n *etcdNetwork) made() (changes []string, overlaps int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.changes), n.overlaps
}

// crashAtAdd has something done when etcd has added a member, and its answer is not given yet, nor ever. The channel is
// closed when it is done.
func (n *etcdNetwork) crashAtAdd(do func()) <-chan struct{} {
	done := make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.crash = func() {
		do()
		close(done)
	}
	return done
}

// change lets a change of membership through, and keeps it in mind.
func (n *etcdNetwork) change(w http.ResponseWriter, r *http.Request, kind string, by http.Handler) {
	n.mu.Lock()
	if n.open++; n.open > 1 {
		n.overlaps++
	}
	n.mu.Unlock()
	var about struct {
		ID etcd.ID `json:"ID"`
	}
	body, err := io.ReadAll(r.Body)
	if err == nil && kind != "add" {
		err = json.Unmarshal(body, &about)
	}
	if err != nil {
		panic(fmt.Errorf("reading a change of membership: %w", err))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	// Etcd ends a change itself; one whose client has gone must not be lost to this progress.
	by.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
	made := answer.Code == http.StatusOK || kind == "promote" && n.votes(r.Context(), r.URL.Host, about.ID)
	n.mu.Lock()
	n.open--
	var crash func()
	if kind == "promote" && made {
		made, n.promoted[about.ID] = !n.promoted[about.ID], true
	}
	if made {
		n.changes = append(n.changes, kind)
		if kind == "add" {
			crash, n.crash = n.crash, nil
		}
	}
	n.mu.Unlock()
	if crash != nil {
		crash()
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // or the client has gone
}

// votes reports whether a member has a vote: one that passes a promotion on to the leader tries again when the leader does not answer
// in time, and says then that the member is no learner any more.
func (n *etcdNetwork) votes(ctx context.Context, host string, id etcd.ID) bool {
	members, err := etcd.Members(context.WithoutCancel(ctx), "http://"+n.address(host))
	return err == nil && slices.ContainsFunc(members, func(m etcd.Member) bool { return m.ID == id && !m.Learner })
}
