// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"net/url"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Title returns the value of the child annotation; empty for a child without a name that is deleted with its owner. Its
// parts may be any text, and are escaped.
func Title(s dsl.ChildSpec) string {
	if s.Name == "" && s.OnDelete != dsl.OrphanChild {
		return "" // the label marks a retained child
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

// Note returns the value of the child annotation for a child without a title: it names the handler that made it.
func Note(s dsl.ChildSpec, handler string) string {
	if Title(s) != "" {
		return "" // the desired object has the title
	}
	return url.PathEscape(handler) + "/"
}

// TitleWithoutPolicy returns the title without the policy, as the owner's inventory has it.
func TitleWithoutPolicy(s dsl.ChildSpec) string {
	s.OnDelete = ""
	return Title(s)
}

// ParseTitle parses the texts of Title and Note; of a note, only the handler. It fills in handler, name, key and
// deletion policy of the spec. The policy is never empty. Ok is true if there is a name.
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
