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

// unlisted names the objects that pass for children of the owner, sorted.
func (s *Session) unlisted() (names []string) {
	owner := s.owner()
	for kind := range s.family.kinds.all {
		for _, mark := range owner.Marks() {
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

// reportUnlisted logs the objects that pass for children of the owner, and are left alone. When the owner is being
// deleted no reconcile will look for them again, so there is an Event, too.
func (s *Session) reportUnlisted() {
	names := s.unlisted()
	if len(names) == 0 {
		return
	}
	const mostNamed = 5
	named := strings.Join(names[:min(len(names), mostNamed)], " ")
	if s.pass.Deleting {
		s.family.settings.Events.Warn(s.pass.Object, "leave", "ChildrenLeft", fmt.Sprintf("%d objects say that they are children of this one, which has no record of them. They are left: %s",
			len(names), named))
	}
	s.pass.Logger.Log().Info("objects say that they are children of this one and are not in its record of children; they are left alone", logmark.Warning, true,
		"objects", named, "more", max(0, len(names)-mostNamed))
}
