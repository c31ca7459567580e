// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/server/webhook"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// warnUnenforced says, to the client that has written an object and in the log, that a webhook has no effect here. A test that
// passes because of that is worse than one that fails.
func (s *Server) warnUnenforced(t *table, r Request, o *unstructured.Unstructured) {
	if t.group != admissionv1.GroupName || r.reply == nil {
		return
	}
	for _, text := range s.network.unenforced(t, o) {
		r.reply.warn(text)
		if s.unenforced != nil && !s.dry {
			s.unenforced(text)
		}
	}
}

// unenforced returns what of an object for admission has no effect.
func (n *network) unenforced(t *table, o *unstructured.Unstructured) (out []string) {
	if !strings.HasSuffix(t.plural, "webhookconfigurations") {
		return nil
	}
	hooks, err := webhook.Hooks(o.Object)
	if err != nil {
		return nil
	}
	for _, h := range hooks {
		if at := h.ClientConfig.Service; at != nil && !n.reaches(at.Namespace, at.Name) {
			out = append(out, fmt.Sprintf("webhook %s is at a Service, and no network reaches Services of this server: give it a url, or the Service the type ExternalName", h.Name))
		}
	}
	return out
}
