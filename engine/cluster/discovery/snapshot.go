// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// snapshot is what the server served at one time. It does not change, but for groups, which are read when they are asked for.
type snapshot struct {
	asked  time.Time
	groups map[string]*group
}

func newSnapshot() *snapshot { return &snapshot{asked: time.Now(), groups: map[string]*group{}} }

// group is what the server serves of a group.
type group struct {
	// versions are those that are known, the preferred one first, and resources those of each.
	versions  []string
	resources map[string][]Resource
	// broken has the versions that are not known, with the reason.
	broken map[string]error
	// read, where it is not nil, fills in the rest when it is called for the first time.
	read func()
}

func newGroup() *group { return &group{resources: map[string][]Resource{}, broken: map[string]error{}} }

// group returns a group, which is empty if it is not served.
func (s *snapshot) group(name string) *group {
	g := s.groups[name]
	if g == nil {
		return &group{}
	}
	if g.read != nil {
		g.read()
	}
	return g
}

// entry returns a group, to be filled.
func (s *snapshot) entry(name string) *group {
	if s.groups[name] == nil {
		s.groups[name] = newGroup()
	}
	return s.groups[name]
}

// serves adds versions that are known, unless they are there.
func (g *group) serves(versions ...string) {
	for _, version := range versions {
		if !slices.Contains(g.versions, version) {
			g.versions = append(g.versions, version)
		}
	}
}

// takeSnapshot asks the server: with two requests at once if it has aggregated discovery. Otherwise these are in vain, and
// client-go sends two more, and one for each group and version.
func takeSnapshot(ctx context.Context, client discovery.DiscoveryInterfaceWithContext) (*snapshot, error) {
	s := newSnapshot()
	found, aggregated, err := download(ctx, client.RESTClient())
	if err != nil {
		return nil, err
	}
	if !aggregated {
		if err := s.ask(ctx, client); err != nil {
			return nil, err
		}
		return s, nil
	}
	for _, document := range found {
		s.read(document)
	}
	return s, nil
}

// ask fills a snapshot by client-go, which knows servers without aggregated discovery.
func (s *snapshot) ask(ctx context.Context, client discovery.DiscoveryInterfaceWithContext) error {
	groups, lists, err := discovery.ServerGroupsAndResourcesWithContext(ctx, client)
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err() // not all groups were asked, so they would seem broken
	}
	for gv, err := range failed {
		if !apierrors.IsNotFound(err) { // gone between the first request and its own
			s.entry(gv.Group).broken[gv.Version] = err
		}
	}
	for _, g := range groups {
		s.entry(g.Name).serves(versionsOf(g)...)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("reading group and version: %w", err)
		}
		s.entry(gv.Group).resources[gv.Version] = resourcesOf(gv, list.APIResources)
	}
	return nil
}

// fresh reports whether the snapshot is recent enough to say that something is missing.
func (s *snapshot) fresh() bool { return time.Since(s.asked) <= freshness }

// find returns the first resource for which wanted is true, in the given version or in any, the preferred one
// first. What describes the resource for people.
func (s *snapshot) find(gv schema.GroupVersion, what string, wanted func(Resource) bool) (Resource, error) {
	in := s.group(gv.Group)
	versions := in.versions
	if gv.Version != "" {
		versions = []string{gv.Version}
	}
	for _, version := range versions {
		list := in.resources[version]
		if i := slices.IndexFunc(list, wanted); i >= 0 {
			return list[i], nil
		}
	}
	if err := in.fault(gv); err != nil {
		return Resource{}, err
	}
	switch {
	case len(in.versions) == 0:
		return Resource{}, fmt.Errorf("API group %s: %w", gv.Group, ErrMissing)
	case gv.Version != "" && !slices.Contains(in.versions, gv.Version):
		return Resource{}, fmt.Errorf("API version %s (there is %s): %w", gv, strings.Join(in.versions, ", "), ErrMissing)
	}
	return Resource{}, fmt.Errorf("%s: %w", what, ErrMissing)
}

// fault returns an error if it is not known whether something is missing, because the version, or without one a
// version of the group, is broken.
func (g *group) fault(gv schema.GroupVersion) error {
	if gv.Version == "" && len(g.broken) > 0 {
		gv.Version = slices.Min(slices.Collect(maps.Keys(g.broken)))
	}
	if err := g.broken[gv.Version]; err != nil {
		return fmt.Errorf("API %s is broken: %w", gv, err)
	}
	return nil
}

// Watchable returns why the resource cannot be watched; nil if it can.
func (r Resource) Watchable() error {
	if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") {
		return nil
	}
	return fmt.Errorf("it cannot be listed and watched (its verbs are %s)", strings.Join(r.Verbs, ", "))
}

func versionsOf(g *metav1.APIGroup) []string {
	var out []string
	if g.PreferredVersion.Version != "" {
		out = append(out, g.PreferredVersion.Version)
	}
	for _, v := range g.Versions {
		if !slices.Contains(out, v.Version) {
			out = append(out, v.Version)
		}
	}
	return out
}

func resourcesOf(gv schema.GroupVersion, list []metav1.APIResource) []Resource {
	var out []Resource
	parts := map[string]bool{}
	for _, r := range list {
		if strings.Contains(r.Name, "/") {
			parts[r.Name] = true
			continue
		}
		out = append(out, Resource{
			GVR: gv.WithResource(r.Name), Kind: r.Kind, Singular: r.SingularName, Short: r.ShortNames, Namespaced: r.Namespaced, Verbs: r.Verbs,
		})
	}
	for i := range out {
		out[i].Status, out[i].Scale = parts[out[i].GVR.Resource+"/status"], parts[out[i].GVR.Resource+"/scale"]
	}
	return out
}
