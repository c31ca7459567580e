// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// unlisted names the objects that look like children of the owner and are not in its inventory, sorted.
func (s *Session) unlisted() (names []string) {
	owner := s.owner()
	for kind := range s.family.kinds.all {
		for _, mark := range owner.IndexValues() {
			for _, o := range kind.OwnedBy(mark) {
				if tree := o.Tree(); tree != nil && owner.Unlisted(tree) {
					names = append(names, ownership.PlaceOf(tree).String())
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// reportUnlisted logs the objects that look like children of the owner and are left alone. If the owner is being
// deleted, it also sends an Event, because no later reconcile will look for them.
func (s *Session) reportUnlisted() {
	names := s.unlisted()
	if len(names) == 0 {
		return
	}
	const mostNamed = 5
	named := strings.Join(names[:min(len(names), mostNamed)], " ")
	if s.in.Deleting {
		s.family.settings.Events.Warn(s.in.Object, "leave", "ChildrenLeft", fmt.Sprintf("%d objects say that they are children of this one, which has no inventory of them. They are left: %s",
			len(names), named))
	}
	s.in.Logger.Log().Info("objects say that they are children of this one and are not in its inventory of children; they are left alone", logmark.Warning, true,
		"objects", named, "more", max(0, len(names)-mostNamed))
}
