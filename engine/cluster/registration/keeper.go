// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package registration keeps the objects by which the API server calls an operator's webhooks, and its admission policies.
//
// The caller says which objects are wanted. The keeper applies them, puts back what others change or delete, and deletes objects with its
// labels that are not wanted any more. It also keeps the conversion of CRDs (see [Conversion]). It watches, and sends a request
// only if an object is not as wanted.
package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
)

const (
	// firstWait and longestWait bound the wait before a failed request is retried, and between two corrections of an object that
	// somebody changes again and again. An object that was left alone for quiet is corrected at once.
	firstWait   = time.Second
	longestWait = time.Minute
	quiet       = 10 * time.Minute
)

// errPending is why objects are not as wanted before the keeper has looked.
var errPending = errors.New("the objects of webhooks and policies were not compared yet")

// Settings say how objects are kept.
type Settings struct {
	// Client takes the rights to get, list, watch, create, patch and delete the wanted kinds, and for conversions to get, list, watch
	// and patch CRDs.
	Client dynamic.Interface
	// Manager is the field manager of all writes. It differs from the one that applies the CRDs, which would remove their conversion.
	Manager string
	// Labels distinguish the objects from those of others: objects with them that are not wanted are deleted. Required.
	Labels map[string]string
	// Earlier are values that one of the labels had in earlier versions: objects with them are not wanted, unless they have the present one
	// again. Optional.
	Earlier map[string][]string
	// Rules asks the API server what the account may do. Objects of kinds that were never wanted are looked for only if
	// it may list them. Nil means that it may.
	Rules func(context.Context) ([]authorizationv1.ResourceRule, error)
	Log   logr.Logger
}

// Keeper keeps objects. Its methods may be called from any goroutine, Run once.
type Keeper struct {
	set           Settings
	wake, changes chan struct{}
	watches       map[place]*watch // of Run
	watching      sync.WaitGroup
	cleaned       bool             // kinds that were never wanted have no leftovers
	paces         map[string]*pace // of Run, by object
	last          string           // the last logged error, of Run

	mu     sync.Mutex
	wanted []*wanted
	part   bool // the last list is not whole
	round  int  // counts calls of Set
	state  error
}

// pace limits how often an object is corrected.
type pace struct {
	digest   string
	wait     time.Duration
	next     time.Time
	accepted int64 // the generation that has more than is wanted, and to which an apply changes nothing
}

// New returns a keeper that has nothing to keep yet. It sends no request.
func New(set Settings) (*Keeper, error) {
	if len(set.Labels) == 0 || set.Manager == "" {
		return nil, errors.New("setting up registration: labels and a field manager are required")
	}
	return &Keeper{
		set: set, wake: make(chan struct{}, 1), changes: make(chan struct{}, 1),
		watches: map[place]*watch{}, paces: map[string]*pace{}, state: errPending,
	}, nil
}

// Set replaces the list of wanted objects. It does not change them. It returns an error, and keeps the old list, if an object is of
// another kind or stands there twice.
func (k *Keeper) Set(objects []*unstructured.Unstructured) error { return k.replace(objects, false) }

// SetPart is Set with a part of the list, if the caller does not know the rest yet. Nothing is deleted then: the rest may replace
// an object.
func (k *Keeper) SetPart(objects []*unstructured.Unstructured) error { return k.replace(objects, true) }

func (k *Keeper) replace(objects []*unstructured.Unstructured, part bool) error {
	all, seen := make([]*wanted, len(objects)), map[string]bool{}
	for i, o := range objects {
		w, err := newWanted(o, k.set.Labels)
		if err != nil {
			return err
		}
		if all[i] = w; seen[w.id()] {
			return fmt.Errorf("registering %s: it is wanted twice", w.name())
		}
		seen[w.id()] = true
	}
	k.mu.Lock()
	k.wanted, k.part, k.state = all, part, errPending
	k.round++
	k.mu.Unlock()
	signal(k.wake)
	return nil
}

// Settled returns an error while an object of the last Set is not as wanted.
func (k *Keeper) Settled() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

// Changes returns a channel for one reader. It has an element after the result of Settled may have changed.
func (k *Keeper) Changes() <-chan struct{} { return k.changes }

// Run keeps the objects until ctx ends, and then returns nil. It leaves them as they are. Only the leader runs it.
func (k *Keeper) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer k.watching.Wait()
	defer cancel()
	var last time.Duration
	for {
		wait := time.Duration(-1)
		retry, err := k.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			last = 0
		default:
			last, wait = backoff.Next(last, firstWait, longestWait)
		}
		if retry > 0 && (wait < 0 || retry < wait) {
			wait = retry
		}
		var timer <-chan time.Time
		if wait >= 0 {
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-timer:
		}
	}
}

// look brings all objects to what is wanted. Retry is when an object that waits for its pace is due; 0 if none does. An error is to be
// retried with back-off.
func (k *Keeper) look(ctx context.Context) (retry time.Duration, err error) {
	k.mu.Lock()
	all, keep, round := k.wanted, k.part, k.round
	k.mu.Unlock()
	if round == 0 {
		return 0, nil
	}
	var errs []error
	paces := map[string]*pace{}
	for _, w := range all {
		p := k.paces[w.id()]
		if p == nil || p.digest != w.digest {
			p = &pace{digest: w.digest}
		}
		paces[w.id()] = p
		wait, err := k.ensure(ctx, w, p)
		keep = keep || err != nil && !notfound.IsUnserved(err) // a missing object may replace an unwanted one
		if errs = append(errs, err); wait > 0 && (retry == 0 || wait < retry) {
			retry = wait
		}
	}
	k.paces = paces
	if !keep {
		errs = append(errs, k.prune(ctx, all)...)
	}
	err = errors.Join(errs...)
	if ctx.Err() == nil {
		k.publish(round, err)
	}
	if errors.Is(err, errPending) && !slices.ContainsFunc(errs, func(e error) bool { return e != nil && !errors.Is(e, errPending) }) {
		return retry, nil // a watch or the pace goes on by itself
	}
	return retry, err
}

// publish stores the result of a look. It logs a new one.
func (k *Keeper) publish(round int, err error) {
	k.mu.Lock()
	changed := round == k.round && fmt.Sprint(err) != fmt.Sprint(k.state)
	if round == k.round {
		k.state = err
	}
	k.mu.Unlock()
	if changed {
		signal(k.changes)
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case errors.Is(err, errPending) || text == k.last:
		return
	case err == nil:
		k.set.Log.Info("objects of webhooks and policies are as wanted again")
	case !isKnown(err):
		k.set.Log.V(1).Info("objects of webhooks and policies are not as wanted", "error", text) // an outage is logged elsewhere
		return
	default:
		k.set.Log.Error(err, "objects of webhooks and policies are not as wanted; it is retried")
	}
	k.last = text
}

// isKnown reports whether an error is an answer of the API server, or of this package. A refused token is like an outage.
func isKnown(err error) bool {
	_, ours := errors.AsType[*problem](err)
	return ours || apierrors.ReasonForError(err) != "" && !apierrors.IsUnauthorized(err)
}

// signal puts an element into a channel with room for one, unless it has one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
