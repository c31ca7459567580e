// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
)

// builtinFields returns the fields beside name and namespace that a field selector of a built-in resource may use.
func builtinFields(group, plural string) []string {
	const rows = `
		/events involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source type
		/namespaces status.phase
		/nodes spec.unschedulable
		/pods spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork status.phase status.podIP status.podIPs status.nominatedNodeName
		/replicationcontrollers status.replicas
		/secrets type
		/services spec.clusterIP spec.type
		batch/jobs status.successful
		certificates.k8s.io/certificatesigningrequests spec.signerName
		events.k8s.io/events regarding.kind regarding.namespace regarding.name regarding.uid regarding.apiVersion regarding.resourceVersion regarding.fieldPath reason reportingController type`
	for row := range strings.Lines(rows) {
		if columns := strings.Fields(row); len(columns) > 0 && columns[0] == group+"/"+plural {
			return columns[1:]
		}
	}
	return nil
}

// customFields returns the fields beside name and namespace that a field selector of a version of a CRD may use.
func customFields(version map[string]any) (out []string) {
	list, _, _ := unstructured.NestedSlice(version, "selectableFields")
	for _, item := range list {
		item, _ := item.(map[string]any)
		if path, ok := item["jsonPath"].(string); ok {
			out = append(out, strings.TrimPrefix(path, "."))
		}
	}
	return out
}

// selects returns the error for a field selector with a field that cannot be selected by, or nil.
func (s *Server) selects(t *table, r Request, parsed fields.Selector) error {
	if s.schemas == nil {
		return nil
	}
	known := t.fields[r.Resource.Version]
	for _, requirement := range parsed.Requirements() {
		switch name := requirement.Field; {
		case name == "metadata.name", name == "metadata.namespace", slices.Contains(known, name):
		case t.group == "batch" && t.kind == "Job":
			return apierrors.NewBadRequest(fmt.Sprintf("field label %q not supported for Job", name))
		case len(known) > 0 || t.custom:
			return apierrors.NewBadRequest("field label not supported: " + name)
		default:
			return apierrors.NewBadRequest(fmt.Sprintf("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", name))
		}
	}
	return nil
}
