// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/x509"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"
)

var (
	hosts = Hosts{Names: ServiceNames("shop", "web"), IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
)

// decided is decide, whose errors end the test.
func decided(t *testing.T, data map[string][]byte, served *content, hosts Hosts, clients confirmed, now time.Time) decision {
	t.Helper()
	d, err := decide(data, served, hosts, clients, now)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// taken is what a process takes from a Secret.
func taken(data map[string][]byte) *content {
	s := read(data)
	return &content{s.current, s.bundle()}
}

// trusts reports whether a client with a bundle accepts a certificate by each of some names.
func trusts(bundle []byte, g *generation, now time.Time, names ...string) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	return !slices.ContainsFunc(names, func(name string) bool {
		_, err := g.leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		return err != nil
	})
}

func TestAFirstCertificateIsMade(t *testing.T) {
	d := decided(t, map[string][]byte{"mine": []byte("x")}, nil, hosts, confirmed{}, start)
	s := read(d.data)
	for _, at := range []time.Duration{-59 * time.Minute, 0, life - time.Second} {
		if !trusts(d.data["ca.crt"], s.current, start.Add(at), "web.shop.svc", "web.shop.svc.cluster.local", "web.shop", "127.0.0.1") {
			t.Errorf("the certificate is not trusted %v after it was made", at)
		}
	}
	if trusts(d.data["ca.crt"], s.current, start, "other.shop.svc") || s.next != nil || string(d.data["mine"]) != "x" {
		t.Errorf("the content is %v", slices.Sorted(maps.Keys(d.data)))
	}
	if bytes.Contains(slices.Concat(d.data["tls.key"], d.data["tls.crt"]), []byte("EC PRIVATE")) || s.current.ca.Equal(s.current.leaf) {
		t.Error("the CA is the certificate")
	}
	if again := decided(t, d.data, taken(d.data), hosts, confirmed{}, start.Add(time.Hour)); again.data != nil {
		t.Errorf("it is written again: %s", again.step)
	}
}

// TestARenewalGoesStepByStep holds when each step comes.
func TestARenewalGoesStepByStep(t *testing.T) {
	made := decided(t, nil, nil, hosts, confirmed{}, start).data
	old := read(made).current
	due := old.renewal()
	if begins := due.Sub(start); begins < 59*24*time.Hour || begins > 60*24*time.Hour {
		t.Errorf("renewal begins after %v", begins)
	}
	if d := decided(t, made, taken(made), hosts, confirmed{made["ca.crt"], start}, due.Add(-time.Second)); d.data != nil || !d.again.Equal(due) {
		t.Errorf("before it is due: %q, again at %v", d.step, d.again)
	}
	next := decided(t, made, taken(made), hosts, confirmed{made["ca.crt"], start}, due).data
	s := read(next)
	if s.next == nil || !bytes.Equal(s.current.cert, old.cert) || !has(next["ca.crt"], old.ca) || !has(next["ca.crt"], s.next.ca) {
		t.Fatal("the next certificate does not stand beside the current one")
	}
	if d := decided(t, next, taken(next), hosts, confirmed{made["ca.crt"], start}, due.Add(24*time.Hour)); d.data != nil {
		t.Errorf("without clients that know it: %s", d.step)
	}
	clients := confirmed{next["ca.crt"], due.Add(time.Hour)}
	if d := decided(t, next, taken(next), hosts, clients, clients.since.Add(59*time.Second)); d.data != nil || !d.again.Equal(clients.since.Add(time.Minute)) {
		t.Errorf("while clients learn of it: %q, again at %v", d.step, d.again)
	}
	now := clients.since.Add(time.Minute)
	used := decided(t, next, taken(next), hosts, clients, now).data
	if !bytes.Equal(used["tls.crt"], next["next-tls.crt"]) || !bytes.Equal(used["ca.crt"], next["ca.crt"]) || used["next-tls.key"] != nil {
		t.Error("the next certificate is not in use with the same bundle")
	}
	if d := decided(t, used, taken(used), hosts, clients, now.Add(retention-time.Second)); d.data != nil {
		t.Errorf("before the old CA goes: %s", d.step)
	}
	deleted := decided(t, nil, taken(used), hosts, clients, now.Add(time.Minute)).data
	if d := read(deleted); !bytes.Equal(d.current.cert, s.next.cert) || !has(deleted["ca.crt"], old.ca) {
		t.Error("when the Secret is deleted, replicas that serve the old certificate are not trusted")
	}
	end := decided(t, used, taken(used), hosts, clients, now.Add(retention)).data
	if has(end["ca.crt"], old.ca) || !has(end["ca.crt"], s.next.ca) || len(end) != 3 {
		t.Errorf("at the end the keys are %v", slices.Sorted(maps.Keys(end)))
	}
}

// TestDamageIsRepaired holds what becomes of a Secret that somebody has changed.
func TestDamageIsRepaired(t *testing.T) {
	made := decided(t, map[string][]byte{"mine": []byte("x")}, nil, hosts, confirmed{}, start).data
	other := decided(t, nil, nil, Hosts{Names: []string{"other.svc"}}, confirmed{}, start).data
	more := Hosts{Names: append(ServiceNames("shop", "web"), "more.svc"), IPs: hosts.IPs}
	tests := map[string]struct {
		change func(map[string][]byte)
		served bool
		hosts  Hosts
		now    time.Duration
		keeps  bool // the certificate is used until clients know the next one
		want   bool // there is a next one
	}{
		"no key":                                        {change: func(d map[string][]byte) { delete(d, "tls.key") }},
		"the key of another certificate":                {change: func(d map[string][]byte) { d["tls.key"] = other["tls.key"] }},
		"a certificate that is none":                    {change: func(d map[string][]byte) { d["tls.crt"] = []byte("x") }},
		"the CA of another certificate":                 {change: func(d map[string][]byte) { d["tls.crt"] = append(certOf(d), caOf(other)...) }},
		"one for other names":                           {change: func(d map[string][]byte) { maps.Copy(d, other) }},
		"an expired one":                                {change: func(map[string][]byte) {}, now: life + time.Hour},
		"one from the future":                           {change: func(map[string][]byte) {}, now: -2 * time.Hour},
		"a deleted Secret, and this process serves it":  {change: func(d map[string][]byte) { clear(d) }, served: true, keeps: true, want: true},
		"a damaged one that this process serves":        {change: func(d map[string][]byte) { delete(d, "tls.key") }, served: true, keeps: true, want: true},
		"one for fewer names than are wanted":           {change: func(map[string][]byte) {}, hosts: more, keeps: true, want: true},
		"a bundle that was changed":                     {change: func(d map[string][]byte) { d["ca.crt"] = nil }, keeps: true},
		"a next certificate that is none":               {change: func(d map[string][]byte) { d["next-tls.crt"] = []byte("x") }, keeps: true},
		"a next certificate for other names":            {change: func(d map[string][]byte) { d["next-tls.crt"], d["next-tls.key"] = other["tls.crt"], other["tls.key"] }, keeps: true},
		"a time that is none for the previous CA":       {change: func(d map[string][]byte) { d["previous-until"] = []byte("soon") }, keeps: true},
		"an expired one that this process serves still": {change: func(map[string][]byte) {}, now: life + time.Hour, served: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			data, now := maps.Clone(made), start.Add(tt.now)
			tt.change(data)
			if len(tt.hosts.Names) == 0 {
				tt.hosts = hosts
			}
			var served *content
			if tt.served {
				served = taken(made)
			}
			d := decided(t, data, served, tt.hosts, confirmed{}, now)
			if d.data == nil && (tt.want || !tt.keeps) {
				t.Fatal("nothing is written")
			}
			if d.data == nil {
				d.data = data
			}
			s := read(d.data)
			if s.current == nil || bytes.Equal(s.current.cert, made["tls.crt"]) != tt.keeps || (s.next != nil) != tt.want {
				t.Errorf("kept %v, next %v", !tt.keeps, s.next != nil)
			}
			if newest := s.next; newest != nil && !newest.isFor(tt.hosts) || newest == nil && !s.current.isFor(tt.hosts) {
				t.Error("no certificate is for the names")
			}
			if !bytes.Equal(d.data["ca.crt"], s.bundle()) || len(data) > 0 && string(d.data["mine"]) != "x" {
				t.Errorf("the content is %v", slices.Sorted(maps.Keys(d.data)))
			}
			if again := decided(t, d.data, taken(d.data), tt.hosts, confirmed{}, now); again.data != nil {
				t.Errorf("it is written once more: %s", again.step)
			}
		})
	}
}

func certOf(data map[string][]byte) []byte { return certPEM(read(data).current.leaf.Raw) }
func caOf(data map[string][]byte) []byte   { return certPEM(read(data).current.ca.Raw) }

// world is a Secret, replicas that learn of it late, and clients that learn late of their bundle, for a random course of events.
type world struct {
	*rand.Rand
	now    time.Time
	secret map[string][]byte
	// history are the Secrets that were written. Each replica has seen a part of them; the leader is the first one.
	history  []written
	replicas [3]struct {
		seen int
		has  *content
	}
	// configured are the bundles that clients were given. They know one for sure after a minute, and may know it at once.
	configured []written
	clients    confirmed // what the leader knows of that
}

// written is something that was written at a time: a Secret, or a bundle.
type written struct {
	at     time.Time
	data   map[string][]byte
	bundle []byte
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), now: start}
	w.write(decided(t, nil, nil, hosts, confirmed{}, start).data)
	w.learn(0)
	w.configured = []written{{at: start, bundle: w.secret["ca.crt"]}}
	return w
}

func (w *world) write(data map[string][]byte) {
	w.secret = data
	w.history = append(w.history, written{at: w.now, data: data})
}

// learn has replicas see Secrets that are older than the time, and some newer ones.
func (w *world) learn(late time.Duration) {
	for i := range w.replicas {
		r := &w.replicas[i]
		for r.seen < len(w.history) && (w.now.Sub(w.history[r.seen].at) >= late || w.IntN(3) == 0) {
			r.has = taken(w.history[r.seen].data)
			r.seen++
		}
	}
}

// step lets time pass and something happen. It reports false if the promise ends: clients learned of no bundle until a certificate expired.
func (w *world) step(t *testing.T) bool {
	w.now = w.now.Add([]time.Duration{time.Second, 20 * time.Second, time.Minute, time.Hour, 24 * time.Hour}[w.IntN(5)] * time.Duration(1+w.IntN(3)) / 2)
	w.learn(retention / 2)
	switch w.IntN(8) {
	case 0: // the leader crashes, and another one knows nothing of clients
		w.clients = confirmed{}
	case 1: // somebody damages or deletes the Secret, and the leader has seen all before that
		if w.IntN(8) == 0 {
			w.replicas[0].seen, w.replicas[0].has = len(w.history), taken(w.history[len(w.history)-1].data)
			w.secret = maps.Clone(w.secret)
			if delete(w.secret, "tls.key"); w.IntN(2) == 0 {
				clear(w.secret)
			}
		}
	case 2: // clients get the bundle, and the leader crashes before it knows
		w.configured = append(w.configured, written{at: w.now, bundle: w.replicas[0].has.bundle})
	case 3, 4:
		w.configured = append(w.configured, written{at: w.now, bundle: w.replicas[0].has.bundle})
		if !bytes.Equal(w.replicas[0].has.bundle, w.clients.bundle) {
			w.clients = confirmed{w.replicas[0].has.bundle, w.now}
		}
	default:
		d := decided(t, w.secret, w.replicas[0].has, hosts, w.clients, w.now)
		if d.step == outOfTime {
			return false
		}
		if d.data != nil && w.IntN(4) > 0 { // else it crashes before the write
			w.write(d.data)
		}
	}
	return true
}

// outOfTime is the step that breaks the promise.
const outOfTime = "the next certificate is in use, for want of another"

// inUse are the bundles that a client may have now.
func (w *world) inUse() (out [][]byte) {
	for i, c := range w.configured {
		if i+1 == len(w.configured) || w.now.Sub(w.configured[i+1].at) < propagation {
			out = append(out, c.bundle)
		}
	}
	return out
}

// TestClientsTrustEachReplicaAtEachMoment holds the promise of the package over random courses of events: the certificate of each
// replica verifies against each bundle that a client may have had within the last minute.
func TestClientsTrustEachReplicaAtEachMoment(t *testing.T) {
	renewals, known := 0, map[string]bool{}
	holds := func(bundle []byte, g *generation, now time.Time) bool {
		key := string(bundle) + string(g.cert)
		if !known[key] {
			known[key] = trusts(bundle, g, now, hosts.Names...)
		}
		return known[key] && g.isValid(now)
	}
	for seed := range uint64(30) {
		w := newWorld(t, seed)
		for i := 0; i < 400 && w.step(t); i++ {
			for r, replica := range w.replicas {
				for b, bundle := range w.inUse() {
					if !holds(bundle, replica.has.current, w.now) {
						t.Fatalf("seed %d, step %d: a client with bundle %d does not trust replica %d", seed, i, b, r)
					}
				}
			}
		}
		if !bytes.Equal(w.secret["tls.crt"], w.history[0].data["tls.crt"]) {
			renewals++
		}
	}
	if renewals < 20 {
		t.Errorf("only %d of the courses had a renewal", renewals)
	}
}
