// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"cmp"
	"encoding/pem"
	"maps"
	"slices"
	"time"
)

// The keys of the Secret. The first three are those of Secrets of the type kubernetes.io/tls, so other tools read them, too.
const (
	// certKey has the certificate that is served, and its CA; privateKey its key; bundleKey the CAs that clients should trust.
	certKey, privateKey, bundleKey = "tls.crt", "tls.key", "ca.crt"
	// nextCert and nextPrivate have the next generation.
	nextCert, nextPrivate = "next-tls.crt", "next-tls.key"
	// previousBundle has CAs of earlier generations, until the time of previousUntil.
	previousBundle, previousUntil = "previous-ca.crt", "previous-until"
)

const (
	// propagation is how long API servers may take to use a new bundle: they learn of configurations by watching them.
	propagation = time.Minute
	// retention is how long a CA stays in the bundle after its certificate was replaced. Replicas learn of that by watching the Secret.
	retention = 10 * time.Minute
	// lookAgain is the longest time between two decisions: the clock may have been set.
	lookAgain = 10 * time.Minute
)

// state is the decoded content of the Secret.
type state struct {
	// current is served. Next is to be served when clients know its CA. They are nil if they are missing or damaged.
	current, next *generation
	// previous are CAs of earlier generations, in PEM, which leave the bundle at a time.
	previous []byte
	until    time.Time
}

// read reads the content of a Secret.
func read(data map[string][]byte) state {
	var s state
	s.current, _ = parse(data[certKey], data[privateKey]) // damage is the same as absence
	s.next, _ = parse(data[nextCert], data[nextPrivate])
	if until, err := time.Parse(time.RFC3339, string(data[previousUntil])); err == nil {
		s.previous, s.until = data[previousBundle], until
	}
	return s
}

// content is the part of the Secret that a process uses.
type content struct {
	current *generation
	bundle  []byte
}

// bundle returns the CAs that clients should trust, the oldest first: so the text stays the same when the next generation becomes the
// current one.
func (s *state) bundle() []byte {
	out := slices.Clone(s.previous)
	for _, g := range []*generation{s.current, s.next} {
		if g != nil {
			out = append(out, certPEM(g.ca.Raw)...)
		}
	}
	return out
}

// write returns the content of a Secret with the state. Other keys stay as they are.
func (s *state) write(data map[string][]byte) map[string][]byte {
	out := maps.Clone(data)
	if out == nil {
		out = map[string][]byte{}
	}
	for _, key := range []string{nextCert, nextPrivate, previousBundle, previousUntil} {
		delete(out, key)
	}
	out[certKey], out[privateKey], out[bundleKey] = s.current.cert, s.current.key, s.bundle()
	if s.next != nil {
		out[nextCert], out[nextPrivate] = s.next.cert, s.next.key
	}
	if len(s.previous) > 0 {
		out[previousBundle], out[previousUntil] = s.previous, []byte(s.until.UTC().Format(time.RFC3339))
	}
	return out
}

// confirmed is the bundle that all clients have, and since when.
type confirmed struct {
	bundle []byte
	since  time.Time
}

// decision says how a Secret is to change.
type decision struct {
	// data is the next content; nil if the content is right.
	data map[string][]byte
	// step says for people what the content changes.
	step string
	// again is when to decide again at the latest.
	again time.Time
}

// decide returns the next content of a Secret. Served is the content that this process serves; nil without any. It stands in for a
// deleted or damaged certificate until clients know the next one.
func decide(data map[string][]byte, served *content, hosts Hosts, clients confirmed, now time.Time) (decision, error) {
	s := read(data)
	step, err := s.advance(served, hosts, clients, now)
	if err != nil {
		return decision{}, err
	}
	if len(s.previous) > 0 && !now.Before(s.until) {
		s.previous, step = nil, cmp.Or(step, "an earlier CA is not trusted any more")
	}
	d := decision{data: s.write(data), step: cmp.Or(step, "changes by others were reverted"), again: s.again(clients, now)}
	if maps.EqualFunc(d.data, data, bytes.Equal) {
		d.data = nil
	}
	return d, nil
}

// repair drops generations that are of no use, and takes the one that this process serves instead. It reports whether the current
// generation is to be replaced.
func (s *state) repair(served *content, hosts Hosts, now time.Time) (renew bool) {
	isOfUse := func(g *generation) bool { return g.isValid(now) && g.servesAny(hosts) }
	if !s.next.isValid(now) || !s.next.isFor(hosts) {
		s.next = nil
	}
	if isOfUse(s.current) {
		return !s.current.isFor(hosts) || !now.Before(s.current.renewal())
	}
	s.current = nil
	if served != nil && isOfUse(served.current) {
		s.current = served.current
		s.retain(served.bundle, now)
	}
	return true
}

// advance brings the state to the present.
func (s *state) advance(served *content, hosts Hosts, clients confirmed, now time.Time) (step string, err error) {
	renew := s.repair(served, hosts, now)
	switch {
	case s.current == nil && s.next != nil:
		s.current, s.next = s.next, nil
		return "the next certificate is in use, for want of another", nil
	case s.current == nil:
		s.current, err = generate(hosts, now)
		return "a certificate was made", err
	case s.next == nil && renew:
		s.next, err = generate(hosts, now)
		return "the next certificate was made", err
	case s.next != nil && has(clients.bundle, s.next.ca) && !now.Before(clients.since.Add(propagation)):
		old := certPEM(s.current.ca.Raw)
		s.current, s.next = s.next, nil
		s.retain(old, now)
		return "the next certificate is in use", nil
	}
	return "", nil
}

// retain keeps the CAs of a bundle for the time that replicas may take to serve the current certificate.
func (s *state) retain(bundle []byte, now time.Time) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if ca := certPEM(block.Bytes); !bytes.Contains(s.bundle(), ca) {
			s.previous = append(slices.Clone(s.previous), ca...)
		}
	}
	s.until = now.Add(retention)
}

// again returns when time will change the decision.
func (s *state) again(clients confirmed, now time.Time) time.Time {
	at := now.Add(lookAgain)
	for _, t := range []time.Time{s.until, s.current.renewal(), s.current.leaf.NotAfter, clients.since.Add(propagation)} {
		if t.After(now) && t.Before(at) {
			at = t
		}
	}
	return at
}
