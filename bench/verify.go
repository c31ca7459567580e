// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// object is what is looked at of a Foo or a ConfigMap when its end state is verified.
type object struct {
	Metadata struct {
		Name, UID       string
		Finalizers      []string
		OwnerReferences []struct{ UID string }
	}
	Spec   struct{ Replicas int64 }
	Status struct{ AvailableReplicas *int64 }
	Data   map[string]string
}

// list returns the Foos as they are.
func (f *foos) list(ctx context.Context) ([]object, error) { return f.listed(ctx, f.path) }

func (f *foos) listed(ctx context.Context, path string) ([]object, error) {
	var out []object
	for next := ""; ; {
		data, err := f.client.Get(ctx, path+"?limit=5000&continue="+next)
		if err != nil {
			return nil, err
		}
		var page struct {
			Metadata struct{ Continue string }
			Items    []object
		}
		if err := json.Unmarshal(data, &page); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		out = append(out, page.Items...)
		if next = page.Metadata.Continue; next == "" {
			return out, nil
		}
	}
}

// verifyStatus returns an error unless each Foo is there, asks for what was asked for, and has the status that it asks
// for.
func (f *foos) verifyStatus(ctx context.Context) error {
	found, err := f.list(ctx)
	if err != nil {
		return err
	}
	if len(found) != f.all() {
		return fmt.Errorf("verifying the end state: there are %d Foos, not %d", len(found), f.all())
	}
	for _, foo := range found {
		i, err := strconv.Atoi(foo.Metadata.Name[len("foo-"):])
		if err != nil {
			return fmt.Errorf("verifying the end state: %w", err)
		}
		if foo.Spec.Replicas != f.asked[i] || foo.Status.AvailableReplicas == nil || *foo.Status.AvailableReplicas != f.asked[i] {
			return fmt.Errorf("verifying the end state: %s does not say %d: %+v", foo.Metadata.Name, f.asked[i], foo)
		}
	}
	return nil
}

// verifyConfigs returns an error unless each Foo has its ConfigMap, with the right owner and content, and there are no
// others.
func (f *foos) verifyConfigs(ctx context.Context) error {
	found, err := f.list(ctx)
	if err != nil {
		return err
	}
	owners := map[string]string{}
	for _, foo := range found {
		owners[foo.Metadata.Name] = foo.Metadata.UID
	}
	configs, err := f.listed(ctx, f.configs)
	if err != nil {
		return err
	}
	for _, config := range configs {
		name := config.Metadata.Name
		i, err := strconv.Atoi(name[max(0, len(name)-6):])
		if err != nil || i >= f.all() || name != nameOf(i) {
			continue // some other one
		}
		owner := config.Metadata.OwnerReferences
		if len(owner) != 1 || owner[0].UID != owners[name] || config.Data["replicas"] != fmt.Sprint(f.asked[i]) {
			return fmt.Errorf("verifying the end state: ConfigMap %s is wrong: %+v", name, config)
		}
		delete(owners, name)
	}
	if len(owners) > 0 {
		return fmt.Errorf("verifying the end state: %d Foos have no ConfigMap", len(owners))
	}
	return nil
}

// verifyBoth verifies both.
func (f *foos) verifyBoth(ctx context.Context) error {
	return errors.Join(f.verifyStatus(ctx), f.verifyConfigs(ctx))
}

// verifyGone returns an error if there is a Foo.
func (f *foos) verifyGone(ctx context.Context) error {
	found, err := f.list(ctx)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("verifying the end state: %d Foos are still there", len(found))
	}
	return err
}

// held waits until each Foo has a finalizer.
func (f *foos) held(ctx context.Context) error {
	for {
		found, err := f.list(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(found, func(o object) bool { return len(o.Metadata.Finalizers) == 0 }) {
			return nil
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}
