// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// warnings are what the API server has warned of since the last step, for a client of a case.
type warnings struct {
	mu   sync.Mutex
	text []string
}

// HandleWarningHeader notes a warning; see rest.WarningHandler. Code 299 is that of the API server's warnings.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	if code != 299 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

// take returns the warnings, and forgets them.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.text
	w.text = nil
	return out
}

// warned reports whether the API server has warned of what the step expects.
func (r *runner) warned(s *step) error {
	got := r.warnings.take()
	if s.Warned == "" || slices.ContainsFunc(got, func(text string) bool { return strings.Contains(text, s.Warned) }) {
		return nil
	}
	if len(got) == 0 {
		return fmt.Errorf("the API server is expected to warn of this, and it does not: %s", s.Warned)
	}
	at := s.at.Key("warned")
	r.fail(at, "the API server warns with other words", fmt.Sprintf("- %s\n+ %s", s.Warned, strings.Join(got, "\n+ ")), edit(at, got[0])...)
	return nil
}
