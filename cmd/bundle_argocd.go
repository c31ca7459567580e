// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// argoFile is the file of a bundle with the health checks for Argo CD. It changes a ConfigMap that is not the bundle's, so it is a patch,
// and the kustomization does not name it: removing the bundle must not remove the ConfigMap.
const argoFile = "argocd-cm.patch.yaml"

// argoHealth is the health check of a kind in Lua. Its verb is the health of an object without a condition Ready.
const argoHealth = `local now, status, found = obj.metadata.generation, obj.status or {}, {}
for _, c in ipairs(status.conditions or {}) do
  if c.observedGeneration == nil or c.observedGeneration == now then found[c.type] = c end
end
if status.observedGeneration ~= nil and status.observedGeneration ~= now then
  return {status = "Progressing", message = "the operator has not seen this generation"}
end
for _, kind in ipairs({"Stalled", "HandlersFailing"}) do
  local c = found[kind]
  if c ~= nil and c.status == "True" then return {status = "Degraded", message = c.message} end
end
local ready = found.Ready
if ready == nil then return {status = %q, message = %q} end
if ready.status == "True" then return {status = "Healthy", message = ready.message} end
return {status = "Progressing", message = ready.message}
`

// argoPatch returns a patch of Argo CD's ConfigMap with the health checks of the operator's own kinds. Without a check, Argo CD calls an
// object of a custom kind healthy as soon as it exists.
func argoPatch(op *dsl.Operator) (file, error) {
	var out strings.Builder
	out.WriteString("# kubectl patch configmap argocd-cm -n argocd --patch-file " + argoFile + "\ndata:\n")
	for _, r := range op.Resources() {
		kind, _, _ := unstructured.NestedString(r.CRD, "spec", "names", "kind")
		if kind == "" {
			continue
		}
		fmt.Fprintf(&out, "  resource.customizations.health.%s_%s: |\n", r.Name.Group, kind)
		for line := range strings.Lines(argoCheck(r)) {
			out.WriteString("    " + line)
		}
	}
	if !strings.Contains(out.String(), "health") {
		return file{}, fmt.Errorf("writing %s: operator %s has no kinds of its own; write health checks for the others by hand", argoFile, op.Name)
	}
	return file{argoFile, out.String()}, nil
}

// argoCheck returns the health check of a resource. An object whose Ready nothing sets is healthy without it.
func argoCheck(r *dsl.Resource) string {
	sets := func(h *dsl.Handler) bool { return h.Machine != nil || slices.Contains(h.Known.Conditions, dsl.Ready) }
	if r.KeepsReady() || slices.ContainsFunc(r.Handlers(), sets) {
		return fmt.Sprintf(argoHealth, "Progressing", "waiting for the operator")
	}
	return fmt.Sprintf(argoHealth, "Healthy", "")
}
