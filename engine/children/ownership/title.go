// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"net/url"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Title is the value of the child annotation, empty for a child without a name that is to be deleted. Its parts may be
// any text; what would not parse back is escaped.
func Title(s dsl.ChildSpec) string {
	if s.Name == "" && s.OnDelete != dsl.OrphanChild {
		return "" // the label says that it is retained
	}
	text := url.PathEscape(s.Handler) + "/" + url.PathEscape(s.Name)
	if s.Key != "" {
		text += "/" + url.PathEscape(s.Key)
	}
	if s.OnDelete != "" && s.OnDelete != dsl.DeleteChild {
		text += ";" + string(s.OnDelete)
	}
	return text
}

// Note is the value of the child annotation for a child without a title: it names the handler that made it.
func Note(s dsl.ChildSpec, handler string) string {
	if Title(s) != "" {
		return "" // the desired object has the title
	}
	return url.PathEscape(handler) + "/"
}

// Which is the title without the policy: which child it is, as the owner's record has it.
func Which(s dsl.ChildSpec) string {
	s.OnDelete = ""
	return Title(s)
}

// ParseTitle reads what Title wrote, and of what Note wrote the handler. Of the spec it fills in handler, name,
// key and policy of deletion, which is never left open. It is ok where there is a name.
func ParseTitle(text string) (s dsl.ChildSpec, ok bool) {
	path, policy, found := strings.Cut(text, ";")
	s.OnDelete = dsl.DeleteChild
	if found {
		s.OnDelete = dsl.DeletePolicy(policy)
	}
	parts := strings.Split(path, "/")
	if len(parts) != 2 && len(parts) != 3 || s.OnDelete == "" || s.Validate() != nil {
		return dsl.ChildSpec{}, false
	}
	for i, into := range []*string{&s.Handler, &s.Name, &s.Key}[:len(parts)] {
		var err error
		if *into, err = url.PathUnescape(parts[i]); err != nil {
			return dsl.ChildSpec{}, false
		}
	}
	return s, s.Name != ""
}
