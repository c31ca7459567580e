// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// uncounted are resources whose writes do not count as work: Events, the lock, and reviews.
var uncounted = [...]string{"events", "leases", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}

// Write is a write request that the API server answered.
type Write struct {
	Verb, Resource, Subresource, Namespace, Name string
	// Code is the HTTP status of the response.
	Code           int
	User           string
	UserAgent, URI string
	// Annotations are those of the audit event, by which admission says what it found.
	Annotations map[string]string
	// At is when the request arrived.
	At time.Time
}

// String formats the write as in "patch foos/status ns/name 200".
func (w Write) String() string {
	resource := w.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s %d", w.Verb, resource, w.Namespace, w.Name, w.Code)
}

// Writes are write requests in the order of their arrival.
type Writes []Write

// Of returns the writes for one object; an empty name means all objects of the resource.
func (w Writes) Of(resource, name string) Writes {
	return slices.DeleteFunc(slices.Clone(w), func(each Write) bool {
		return each.Resource != resource || name != "" && each.Name != name
	})
}

// WithoutConflicts returns the writes without those that the server refused as stale. How many there are depends on
// who else writes at the same time, and how fast.
func (w Writes) WithoutConflicts() Writes {
	return slices.DeleteFunc(slices.Clone(w), func(each Write) bool { return each.Code == http.StatusConflict })
}

// String has one line for each write.
func (w Writes) String() string {
	lines := make([]string, len(w))
	for i, each := range w {
		lines[i] = each.String()
	}
	return strings.Join(lines, "\n")
}

// Mark is a position in the audit log.
type Mark int64

// Mark returns the current end of the audit log, for [Cluster.Writes]. It skips the test if there is no audit log.
func (c *Cluster) Mark(t testing.TB) Mark {
	t.Helper()
	c.needAudit(t)
	info, err := os.Stat(c.audit.path)
	if err != nil {
		t.Fatalf("marking audit log: %v", err)
	}
	return Mark(info.Size())
}

// Writes returns a user's write requests that arrived between the mark and this call, whatever their responses. It
// waits for unfinished requests, so a test that sees the effect of a write finds the write here. The user is the
// impersonated one, if any; an empty user means all. Writes of Events, leases and access reviews are left out,
// except for resources in including.
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

// auditLog is the API server's log of write requests, with two lines for each, see auditPolicy. The request itself
// writes them, the first one before anything else.
type auditLog struct{ path string }

type auditEvent struct {
	AuditID, Stage, Verb, RequestURI, UserAgent string
	User, ImpersonatedUser                      struct{ Username string }
	ObjectRef                                   struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus                              struct{ Code int }
	RequestReceivedTimestamp                    time.Time
	Annotations                                 map[string]string
}

func (e *auditEvent) write() Write {
	w := Write{
		Verb: e.Verb, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code,
		User: e.User.Username, UserAgent: e.UserAgent, URI: e.RequestURI, Annotations: e.Annotations, At: e.RequestReceivedTimestamp,
	}
	if e.ImpersonatedUser.Username != "" {
		w.User = e.ImpersonatedUser.Username
	}
	return w
}

// since returns the requests that have arrived from the mark until now, and waits for their responses. It must poll
// the file while a response is missing.
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

// read returns the events in the complete lines from an offset on, and the offset after them.
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
		// The first line is incomplete if the mark was set while it was being written. Its request arrived neither
		// before nor after.
		if err := json.Unmarshal(line, e); err == nil {
			events = append(events, e)
		}
	}
	return events, from + int64(len(text)), nil
}
