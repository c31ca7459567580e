// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// plane is an API server in memory.
type plane struct {
	*server.Server
	admin *server.Client
	// ahead is by how much the clocks of the replicas have been set forward, in nanoseconds.
	ahead *atomic.Int64
}

func newPlane() plane {
	s := server.New(complete.Settings())
	return plane{s, s.Admin(), &atomic.Int64{}}
}

// client returns a client. Before each request it calls fault.
func (p plane) client(t *testing.T, fault func(server.Request) error) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://memory", Transport: p.admin.Through(fault, nil), QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// replica is a process with a keeper.
type replica struct {
	*Keeper
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	fault error // of its writes
	lines []string
}

// start starts a replica that follows, and leads if it is asked to.
func (p plane) start(t *testing.T, leads bool) *replica {
	t.Helper()
	r := &replica{}
	r.Keeper = New(Settings{
		Namespace: "default", Name: "web-tls", Hosts: hosts, Manager: "op", Labels: map[string]string{"app": "op"},
		Client: p.client(t, func(q server.Request) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if q.Verb == "create" || q.Verb == "update" {
				return r.fault
			}
			return nil
		}),
		Now: func() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) },
		Log: funcr.New(func(_, line string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.lines = append(r.lines, line)
		}, funcr.Options{}),
	})
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	r.done.Go(func() { _ = r.Follow(ctx) })
	if leads {
		r.done.Go(func() { _ = r.Lead(ctx) })
	}
	return r
}

func (r *replica) ends() {
	r.stop()
	r.done.Wait()
}

func (r *replica) breaks(fault error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

// logged returns how many lines have a text.
func (r *replica) logged(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// serves returns the certificate that clients get now.
func (r *replica) serves(t *testing.T) []byte {
	t.Helper()
	c, err := r.Certificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Certificate[0]
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// skip sets the clocks forward. The replicas notice it when they look next; watches of client-go take long in virtual time.
func (p plane) skip(d time.Duration) {
	p.ahead.Add(int64(d))
	pass(lookAgain)
}

const day = 24 * time.Hour

// TestReplicasShareACertificate follows a certificate through a renewal, with a replica that only follows, and a leader that crashes
// in each step.
func TestReplicasShareACertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		other := p.start(t, false)
		if _, err := other.Certificate(nil); err == nil || other.Bundle() != nil {
			t.Error("there is a certificate before the leader has made it")
		}
		leader := p.start(t, true)
		pass(time.Second)
		first, bundle := other.serves(t), other.Bundle()
		<-other.Changes()
		if !bytes.Equal(leader.serves(t), first) {
			t.Error("replicas serve different certificates")
		}
		leader.Confirm(bundle)
		crash := func() {
			leader.ends()
			leader = p.start(t, true)
			pass(time.Second)
		}
		crash()
		p.skip(61 * day)
		if both := other.Bundle(); !bytes.HasPrefix(both, bundle) || len(both) <= len(bundle) || !bytes.Equal(other.serves(t), first) {
			t.Fatal("after two thirds of its life there is no next certificate beside the first one")
		}
		<-other.Changes()
		crash()
		leader.Confirm(bundle) // of before
		p.skip(day)
		if !bytes.Equal(other.serves(t), first) {
			t.Error("the next certificate is in use, and clients do not know it")
		}
		leader.Confirm(leader.Bundle())
		pass(30 * time.Second)
		crash()
		leader.Confirm(leader.Bundle())
		pass(50 * time.Second)
		if !bytes.Equal(other.serves(t), first) {
			t.Error("the new leader does not know for how long clients have known the bundle, and has not waited")
		}
		pass(11 * time.Second)
		if second := other.serves(t); bytes.Equal(second, first) || !bytes.Equal(leader.serves(t), second) {
			t.Error("the next certificate is not in use")
		}
		crash()
		pass(retention)
		if got := other.Bundle(); bytes.HasPrefix(got, bundle) || len(got) > len(bundle)+10 {
			t.Error("the first CA is trusted still")
		}
		leader.ends()
		other.ends()
	})
}

// TestOthersWriteTheSecret holds that a person's keys stay, and that a Secret which is gone or damaged is made anew while its certificate
// is served on.
func TestOthersWriteTheSecret(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(context.Context, dynamic.ResourceInterface) error
		renews bool
	}{
		"a key more": {func(ctx context.Context, c dynamic.ResourceInterface) error {
			_, err := c.Patch(ctx, "web-tls", types.MergePatchType, []byte(`{"data": {"mine": "eA==", "ca.crt": null}}`), metav1.PatchOptions{})
			return err
		}, false},
		"a key less": {func(ctx context.Context, c dynamic.ResourceInterface) error {
			_, err := c.Patch(ctx, "web-tls", types.MergePatchType, []byte(`{"data": {"mine": "eA==", "tls.key": ""}}`), metav1.PatchOptions{})
			return err
		}, true},
		"the Secret is deleted": {func(ctx context.Context, c dynamic.ResourceInterface) error {
			return c.Delete(ctx, "web-tls", metav1.DeleteOptions{})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlane()
				leader := p.start(t, true)
				pass(time.Second)
				first := leader.serves(t)
				objects := p.client(t, nil).Resource(secrets).Namespace("default")
				if err := tt.change(t.Context(), objects); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				if !bytes.Equal(leader.serves(t), first) {
					t.Error("the certificate is not served on")
				}
				leader.Confirm(leader.Bundle())
				pass(time.Minute)
				if bytes.Equal(leader.serves(t), first) == tt.renews {
					t.Errorf("after a minute another certificate is served: %v", !tt.renews)
				}
				secret, err := objects.Get(t.Context(), "web-tls", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				kind, _, _ := unstructured.NestedString(secret.Object, "type")
				data := dataOf(secret)
				if kind != "kubernetes.io/tls" || secret.GetLabels()["app"] != "op" || !bytes.Equal(data["ca.crt"], leader.Bundle()) {
					t.Errorf("type %s, labels %v", kind, secret.GetLabels())
				}
				if kept := string(data["mine"]) == "x"; kept != (name != "the Secret is deleted") {
					t.Errorf("the person's key is there: %v", kept)
				}
				leader.ends()
			})
		})
	}
}

// TestTwoLeadersWriteOneCertificate holds that a write based on an older Secret is refused, and that the loser takes what it reads.
func TestTwoLeadersWriteOneCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		one, two := p.start(t, true), p.start(t, true)
		pass(time.Second)
		p.skip(61 * day)
		if n := one.logged("the next certificate was made") + two.logged("the next certificate was made"); n != 1 {
			t.Errorf("%d times a next certificate was made", n)
		}
		if !bytes.Equal(one.serves(t), two.serves(t)) || !bytes.Equal(one.Bundle(), two.Bundle()) || one.logged("failed")+two.logged("failed") != 0 {
			t.Errorf("the leaders differ: %v %v", one.lines, two.lines)
		}
		one.ends()
		two.ends()
	})
}

// TestAFaultIsLoggedOnce holds that a write which fails is tried again with back-off, and logged once, with advice.
func TestAFaultIsLoggedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		fault error
		want  string
	}{
		"a missing right":     {apierrors.NewForbidden(secrets.GroupResource(), "web-tls", errors.New("no role")), "operator rbac"},
		"an immutable Secret": {apierrors.NewInvalid(secretKind, "web-tls", nil), "delete the Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlane()
				r := p.start(t, true)
				r.breaks(tt.fault)
				pass(time.Hour)
				if r.logged("failed") != 1 || r.logged(tt.want) != 1 {
					t.Errorf("logged %s", strings.Join(r.lines, "\n"))
				}
				r.breaks(nil)
				pass(longestWait)
				if r.serves(t); r.logged("is written again") != 1 {
					t.Errorf("logged %s", strings.Join(r.lines, "\n"))
				}
				r.ends()
			})
		})
	}
}

var secretKind = secrets.GroupVersion().WithKind("Secret").GroupKind()

// TestAnOutageIsNotLogged holds that requests which do not get through are no news of this package, and that the certificate is served on.
func TestAnOutageIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		r := p.start(t, true)
		pass(time.Second)
		r.breaks(fmt.Errorf("connection refused"))
		p.skip(70 * day)
		r.serves(t)
		if r.logged("failed") != 0 {
			t.Errorf("logged %s", strings.Join(r.lines, "\n"))
		}
		r.breaks(nil)
		pass(longestWait)
		if r.logged("the next certificate was made") != 1 {
			t.Errorf("logged %s", strings.Join(r.lines, "\n"))
		}
		r.ends()
	})
}
