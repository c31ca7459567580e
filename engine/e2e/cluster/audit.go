// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// uncounted are resources whose writes are no work: Events, the lock, and questions.
var uncounted = [...]string{"events", "leases", "selfsubjectaccessreviews", "selfsubjectreviews"}

// Write is a write request that the API server answered.
type Write struct {
	Verb, Resource, Subresource, Namespace, Name string
	// Code is the HTTP status of the answer.
	Code           int
	User           string
	UserAgent, URI string
	// At is when the request came in.
	At time.Time
}

// String is the write in short, as in "patch foos/status ns/name 200".
func (w Write) String() string {
	resource := w.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s %d", w.Verb, resource, w.Namespace, w.Name, w.Code)
}

// Writes are write requests in the order in which they came in.
type Writes []Write

// Of returns those for one object, or, when name is empty, for all objects of the resource.
func (w Writes) Of(resource, name string) Writes {
	return slices.DeleteFunc(slices.Clone(w), func(each Write) bool {
		return each.Resource != resource || name != "" && each.Name != name
	})
}

// String has a line for each.
func (w Writes) String() string {
	lines := make([]string, len(w))
	for i, each := range w {
		lines[i] = each.String()
	}
	return strings.Join(lines, "\n")
}

// Mark is a place in the audit log.
type Mark int64

// Mark returns the present end of the audit log, for [Cluster.Writes]. It skips the test when there
// is none.
func (c *Cluster) Mark(t testing.TB) Mark {
	t.Helper()
	c.needAudit(t)
	info, err := os.Stat(c.audit.path)
	if err != nil {
		t.Fatalf("marking audit log: %v", err)
	}
	return Mark(info.Size())
}

// Writes returns a user's write requests that came in since the mark and before this call,
// whatever their answers. A request that is still on its way is waited for, so whoever sees the effect of a
// write finds it here. The user is the one impersonated, if any; the empty one stands for all.
// Writes of Events, leases and access reviews are left out, save of resources in including.
func (c *Cluster) Writes(t testing.TB, user string, since Mark, including ...string) Writes {
	t.Helper()
	c.needAudit(t)
	ctx, cancel := bounded(t)
	defer cancel()
	answered, err := c.audit.since(ctx, since)
	if err != nil {
		t.Fatalf("reading audit log: %v", err)
	}
	var writes Writes
	for _, e := range answered {
		w := e.write()
		if (user == "" || w.User == user) && (!slices.Contains(uncounted[:], w.Resource) || slices.Contains(including, w.Resource)) {
			writes = append(writes, w)
		}
	}
	slices.SortStableFunc(writes, func(a, b Write) int { return a.At.Compare(b.At) })
	return writes
}

func (c *Cluster) needAudit(t testing.TB) {
	t.Helper()
	if c.audit == nil {
		t.Skipf("needs the audit log, which the cluster of $%s does not give", KubeconfigVariable)
	}
}

// auditLog is the API server's log of write requests: two lines for each, see auditPolicy. The
// request itself writes them, the first one before anything else.
type auditLog struct{ path string }

type auditEvent struct {
	AuditID, Stage, Verb, RequestURI, UserAgent string
	User, ImpersonatedUser                      struct{ Username string }
	ObjectRef                                   struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus                              struct{ Code int }
	RequestReceivedTimestamp                    time.Time
}

func (e *auditEvent) write() Write {
	w := Write{
		Verb: e.Verb, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code,
		User: e.User.Username, UserAgent: e.UserAgent, URI: e.RequestURI, At: e.RequestReceivedTimestamp,
	}
	if e.ImpersonatedUser.Username != "" {
		w.User = e.ImpersonatedUser.Username
	}
	return w
}

// since returns the requests that have come in from the mark until now, and waits for their
// answers. Nobody tells of new lines in a file, so it looks again and again while any is missing.
func (a *auditLog) since(ctx context.Context, mark Mark) ([]*auditEvent, error) {
	events, next, err := a.read(int64(mark))
	pending := map[string]bool{}
	for _, e := range events {
		if e.Stage == "RequestReceived" {
			pending[e.AuditID] = true
		}
	}
	var answered []*auditEvent
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		for _, e := range events {
			if e.Stage != "RequestReceived" && pending[e.AuditID] {
				delete(pending, e.AuditID)
				answered = append(answered, e)
			}
		}
		if err != nil || len(pending) == 0 {
			return answered, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the answers to %d requests: %w", len(pending), context.Cause(ctx))
		}
		events, next, err = a.read(next)
	}
}

// read returns the events of the complete lines from an offset on, and the offset after them.
func (a *auditLog) read(from int64) (events []*auditEvent, next int64, err error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, from, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, from, 1<<40))
	if err != nil {
		return nil, from, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(text) {
		e := &auditEvent{}
		// The first line is broken where the mark was set while it was being written. Its request
		// came in neither before nor after.
		if err := json.Unmarshal(line, e); err == nil {
			events = append(events, e)
		}
	}
	return events, from + int64(len(text)), nil
}
