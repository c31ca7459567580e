// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// wrote returns the line of a write. A write that has changed nothing has none.
func (l *lines) wrote(w write) line {
	n := line{object: object(w.Resource.Resource, w.Namespace, w.Name), by: w.by}
	n.what, n.color = w.words()
	return n
}

// controllers are those of the API server in the process.
const controllers = "controllers"

// own writes the line of a write by the API server itself. Pods and their kin have others. The objects of each namespace and the
// status of a CRD have none.
func (l *lines) own(w server.OwnWrite) {
	asked := server.Request{Verb: "patch", Resource: w.Resource.WithVersion(""), Namespace: w.Namespace, Name: w.Name}
	if deleted(w.After) && !deleted(w.Before) {
		asked.Verb = "delete"
	}
	furnished := w.Resource.Group == "" && (asked.Resource.Resource == "serviceaccounts" && w.Name == "default" || w.Name == "kube-root-ca.crt")
	served := w.Resource.Resource == "customresourcedefinitions" && asked.Verb == "patch" && w.After != nil
	if !furnished && !served && !staged(w.Before) && !slices.Contains(unseen, w.Resource) {
		l.write(l.wrote(write{Request: asked, by: controllers, code: http.StatusOK, before: w.Before, after: w.After}))
	}
}

// staged reports whether an object was made by a workload that comes alive.
func staged(o map[string]any) bool {
	owner := metav1.GetControllerOf(&unstructured.Unstructured{Object: o})
	return owner != nil && (strings.HasPrefix(owner.APIVersion, "apps/") || strings.HasPrefix(owner.APIVersion, "batch/"))
}

// words say what was written, or why it was not.
func (w write) words() (what, color string) {
	switch {
	case w.code >= http.StatusBadRequest:
		return w.refusal(), red
	case w.Verb == "deletecollection":
		return "deleted all", yellow
	case w.Verb == "delete" && w.after == nil:
		return "deleted", yellow
	case w.Verb == "delete":
		held := (&unstructured.Unstructured{Object: w.after}).GetFinalizers()
		if len(held) == 0 {
			return "is being deleted", yellow
		}
		return "is being deleted, held by " + strings.Join(held, ", "), yellow
	case w.before == nil:
		return "created", green
	case w.after == nil:
		return "deleted", yellow // the last finalizer was taken off
	case deleted(w.after) && len((&unstructured.Unstructured{Object: w.after}).GetFinalizers()) == 0:
		return joined(w.changes()) + ": deleted", yellow
	}
	changed := w.changes()
	if !slices.ContainsFunc(changed, func(c string) bool { return !strings.HasPrefix(c, "annotation ") }) {
		color = dim
	}
	return joined(changed), color
}

// changes says what the write has changed. Others may have written a status at the same time.
func (w write) changes() []string {
	before, after := w.before, w.after
	if _, found := w.Body["status"]; w.Body != nil && w.Subresource != "status" && !found {
		before, after = maps.Clone(before), maps.Clone(after)
		delete(before, "status")
		delete(after, "status")
	}
	return changes(before, after)
}

func deleted(o map[string]any) bool {
	return (&unstructured.Unstructured{Object: o}).GetDeletionTimestamp() != nil
}

// refusal says what was refused, in the API server's words.
func (w write) refusal() string {
	verb := w.Verb
	if w.Subresource != "" {
		verb += " of " + w.Subresource
	}
	out := fmt.Sprintf("%s refused, %d %s", verb, w.code, http.StatusText(w.code))
	if w.message != "" {
		out += ": " + strings.ReplaceAll(w.message, "\n", " ")
	}
	return out
}

// few is the number of changes that a line names.
const few = 4

// joined joins the first few changes.
func joined(changes []string) string {
	if len(changes) > few {
		return strings.Join(changes[:few], ", ") + fmt.Sprintf(", and %d more", len(changes)-few)
	}
	return strings.Join(changes, ", ")
}
