// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// observer is a Lease that notes the contexts of its requests.
type observer struct {
	resourcelock.Interface
	requests []context.Context
	errs     []error
}

func (o *observer) note(ctx context.Context) {
	o.requests = append(o.requests, ctx)
	o.errs = append(o.errs, ctx.Err())
}

func (o *observer) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	o.note(ctx)
	return &resourcelock.LeaderElectionRecord{}, nil, nil
}

func (o *observer) Create(ctx context.Context, _ resourcelock.LeaderElectionRecord) error {
	o.note(ctx)
	return nil
}

func (o *observer) Update(ctx context.Context, _ resourcelock.LeaderElectionRecord) error {
	o.note(ctx)
	return nil
}

func (o *observer) Identity() string { return "a" }

func TestRequestsComeToTheirEnd(t *testing.T) {
	o := &observer{}
	l := &lock{Interface: o, elector: &Elector{}, patience: 10 * time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := l.Get(ctx); err != nil {
		t.Error(err)
	}
	if err := l.Create(ctx, resourcelock.LeaderElectionRecord{}); err != nil {
		t.Error(err)
	}
	if err := l.Update(ctx, resourcelock.LeaderElectionRecord{}); err != nil {
		t.Error(err)
	}
	if len(o.requests) != 3 {
		t.Fatalf("%d requests, want 3", len(o.requests))
	}
	for i, request := range o.requests {
		if o.errs[i] != nil {
			t.Errorf("request %d was aborted", i)
		}
		deadline, limited := request.Deadline()
		if left := time.Until(deadline); !limited || left > l.patience {
			t.Errorf("request %d may take %v, want at most %v", i, left, l.patience)
		}
	}
}
