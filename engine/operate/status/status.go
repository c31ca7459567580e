// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package status has the answer of an operator to the question how it is. It is pure.
package status

import (
	"time"

	"github.com/handwerk-dev/handwerk/engine/decide/pause"
)

// Status is a process of an operator at one moment.
type Status struct {
	// At is the moment, by the clock of the process.
	At       time.Time `json:"at"`
	Operator string    `json:"operator"`
	// Version is the version of the program. Process is the identity of the process in the leader's lock.
	Version string    `json:"version,omitempty"`
	Process string    `json:"process"`
	Started time.Time `json:"started"`
	State   State     `json:"state"`
	// Configuration is the source of the operator.
	Configuration Configuration `json:"configuration"`
	Leader        Leader        `json:"leader"`
	// Pauses are the pauses of the operator and of namespaces. Paused objects are counted by their health.
	Pauses    []pause.Pause `json:"pauses,omitempty"`
	Resources []Resource    `json:"resources"`
	// Degraded are the checks of /readyz that are not ok, without those of single objects.
	Degraded []Check `json:"degraded,omitempty"`
}

// State says whether a process works.
type State string

// The states.
const (
	Starting   State = "starting"
	Working    State = "working"
	StandingBy State = "standing by"
	Stopping   State = "stopping"
)

// Configuration is the source of an operator.
type Configuration struct {
	// Files are the files that were read. Digest is the digest of their texts. Both are empty for an operator written in
	// Go.
	Files  []string  `json:"files,omitempty"`
	Digest string    `json:"digest,omitempty"`
	Loaded time.Time `json:"loaded"`
}

// Leader says who leads.
type Leader struct {
	// Mode is none, lease or life. Lock has the namespace and the name of the lock, empty in mode none.
	Mode string `json:"mode"`
	Lock string `json:"lock,omitempty"`
	// Leads is true if this process leads. Since is when it began.
	Leads bool       `json:"leads"`
	Since *time.Time `json:"since,omitempty"`
	// Holder is the process that leads, as far as this one knows.
	Holder string `json:"holder,omitempty"`
}

// Resource is a resource that an operator handles.
type Resource struct {
	// Feed is the source of its objects. Feeds are the sources of its children and related objects.
	Source
	Sources []Source `json:"feeds,omitempty"`
	Queue   Queue    `json:"queue"`
	// Health counts the handled objects by their health: ready, waiting, failing, held or paused.
	Health map[string]int `json:"standing"`
	// NotReady names some objects that are not ready, the oldest of each health first.
	NotReady []Object `json:"notReady,omitempty"`
	// Parked is the number of objects that wait for the cache. Looping is the number of objects that the breaker holds.
	Parked  int       `json:"parked,omitempty"`
	Looping int       `json:"looping,omitempty"`
	Daemons []Daemons `json:"daemons,omitempty"`
	States  []InState `json:"states,omitempty"`
}

// Source describes a source of objects.
type Source struct {
	// Name is the resource, or child/ or related/ and a name as in /readyz.
	Name string `json:"name"`
	// State is running, starting, not served, forbidden or faulty. Message says why.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Objects is the number of objects in the cache, and Bytes their size. Sources of one resource share both.
	Objects int `json:"objects"`
	Bytes   int `json:"bytes"`
	// LastEvent is when the last event or bookmark came.
	LastEvent *time.Time `json:"lastEvent,omitempty"`
}

// Queue is the queue of a resource. It is empty while the process does not lead.
type Queue struct {
	Workers int `json:"workers"`
	// Working is the number of workers that have an object, and Longest is when the first of them took it.
	Working int        `json:"working"`
	Longest *time.Time `json:"longest,omitempty"`
	// Waiting is the number of objects that wait for a worker, by queue class. Oldest is when the first of them was
	// queued.
	Waiting map[string]int `json:"waiting,omitempty"`
	Oldest  *time.Time     `json:"oldest,omitempty"`
	// Later is the number of objects that are due later, for example for a retry or a timer.
	Later int `json:"later"`
}

// Object is an object that is not ready.
type Object struct {
	// Name has the namespace, too.
	Name   string    `json:"name"`
	Health string    `json:"standing"`
	Since  time.Time `json:"since"`
	// Why has a text for each handler that is not finished.
	Why []string `json:"why,omitempty"`
}

// Daemons counts the daemons of a handler.
type Daemons struct {
	Handler string `json:"handler"`
	Running int    `json:"running"`
	// Late is the number of daemons that still run after their time to stop.
	Late int `json:"late,omitempty"`
}

// InState counts the objects in a state of a machine.
type InState struct {
	Machine string     `json:"machine"`
	State   string     `json:"state"`
	Objects int        `json:"objects"`
	Oldest  *time.Time `json:"oldest,omitempty"`
}

// Check is a line of /readyz.
type Check struct {
	Name string `json:"name"`
	// State is degraded or failed.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
}

// Healthy reports whether nothing is degraded.
func (s *Status) Healthy() bool {
	if len(s.Degraded) > 0 {
		return false
	}
	for _, r := range s.Resources {
		if r.Health["failing"] > 0 || r.Health["held"] > 0 || r.Looping > 0 {
			return false
		}
	}
	return true
}
