// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/clock"
	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// counters is the first line of a saved state.
type counters struct {
	Version int64 `json:"version"`
	UIDs    int   `json:"uids"`
	// Now is the time of a stopped clock.
	Now time.Time `json:"now,omitzero"`
	// Objects is how many follow. A file that lacks some would else be taken for one of fewer objects.
	Objects int `json:"objects"`
}

// stored is an object in a saved state.
type stored struct {
	Resource string          `json:"resource"`
	Object   json.RawMessage `json:"object"`
}

// Version returns the version of the last write.
func (s *Server) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Mark is a state of a server: two marks are equal if nothing new is to be saved between them.
type Mark struct {
	version int64
	// now is the time of a stopped clock.
	now time.Time
}

// Mark returns the mark of the present state.
func (s *Server) Mark() Mark {
	return Mark{version: s.Version(), now: s.standing()}
}

// standing returns the time of a stopped clock, and the zero value for another one.
func (s *Server) standing() time.Time {
	if c, stopped := s.clock.(*clock.Stopped); stopped {
		return c.Now()
	}
	return time.Time{}
}

// Versions returns the versions of the last writes to resources.
func (s *Server) Versions(resources ...schema.GroupVersionResource) map[schema.GroupVersionResource]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[schema.GroupVersionResource]int64{}
	for _, r := range resources {
		if t := s.tables[r.GroupResource()]; t != nil {
			out[r] = t.objects.Last()
		}
	}
	return out
}

// Save writes the objects of all resources: a line of JSON for each, after one with the version. Tokens, open watches
// and the history of changes are not saved.
func (s *Server) Save(to io.Writer) error {
	count, rows := s.rows()
	out := json.NewEncoder(to)
	if err := out.Encode(count); err != nil {
		return err
	}
	for _, r := range rows {
		data, err := json.Marshal(r.row.Tree().Object)
		if err == nil {
			err = out.Encode(stored{r.resource.String(), data})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// savedRow is a row with its resource.
type savedRow struct {
	resource schema.GroupResource
	row      *store.Row
}

// rows returns all rows at one moment. They do not change any more, so they can be encoded without the lock.
func (s *Server) rows() (counters, []savedRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []savedRow
	for _, t := range s.sorted() {
		if t.stored != nil {
			continue // another table has the objects
		}
		for _, row := range t.objects.In("") {
			out = append(out, savedRow{t.name(), row})
		}
	}
	return counters{s.version, s.uids, s.standing(), len(out)}, out
}

// Resume replaces all objects by saved ones, with their uids and versions, and lets versions go on from there. A stopped clock
// goes on from the saved time if that is later. It is for a server that has no clients yet. After an error the server is of no use.
func (s *Server) Resume(from io.Reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := json.NewDecoder(bufio.NewReader(from))
	var count counters
	if err := in.Decode(&count); err != nil {
		return fmt.Errorf("resuming state: %w", err)
	}
	for name, t := range s.tables {
		if t.objects.Empty(0); t.custom {
			delete(s.tables, name)
		}
	}
	var custom []stored
	for n := range count.Objects {
		var next stored
		if err := in.Decode(&next); err != nil {
			return fmt.Errorf("resuming state: reading object %d of %d: %w", n+1, count.Objects, err)
		}
		if _, known := s.tables[schema.ParseGroupResource(next.Resource)]; !known {
			custom = append(custom, next) // the table comes with its CRD
		} else if err := s.restore(next); err != nil {
			return err
		}
	}
	if in.More() {
		return fmt.Errorf("resuming state: it goes on after its %d objects", count.Objects)
	}
	for _, next := range custom {
		if err := s.restore(next); err != nil {
			return err
		}
	}
	s.proceed(count)
	return nil
}

// restore stores a saved object. A CRD is served again.
func (s *Server) restore(saved stored) error {
	name := schema.ParseGroupResource(saved.Resource)
	t := s.tables[name]
	o := &unstructured.Unstructured{}
	err := utiljson.Unmarshal(saved.Object, &o.Object)
	if t == nil && err == nil {
		err = errors.New("its CRD is missing")
	}
	if err == nil && name == crds() {
		err = s.serveAgain(o)
	}
	if err != nil {
		return fmt.Errorf("resuming %s %s: %w", saved.Resource, o.GetName(), err)
	}
	t.objects.Commit(store.Added, o)
	if name == services() {
		s.network.follow(o, false)
	}
	return nil
}

// serveAgain serves the resource of a CRD, unless its names belong to another one.
func (s *Server) serveAgain(crd *unstructured.Unstructured) error {
	r, err := resourceOf(crd)
	if err != nil || !isEstablished(crd) {
		return err
	}
	forms, err := s.formsOf(crd)
	if err != nil {
		return err
	}
	s.serve(crd, r, forms)
	return nil
}

// proceed lets versions go on after a restored state, and takes up what was under way.
func (s *Server) proceed(count counters) {
	if c, stopped := s.clock.(*clock.Stopped); stopped {
		c.Next(count.Now)
	}
	s.version, s.uids, s.policy, s.admissions = count.Version, count.UIDs, nil, nil
	for _, t := range s.tables {
		t.objects.Forget(s.version)
	}
	if s.garbage != nil {
		s.recount()
	}
	s.publish()
	s.sweepLater()
}
