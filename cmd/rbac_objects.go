// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"io"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

const rbacGroup = "rbac.authorization.k8s.io"

// roleObjects returns roles and their bindings as API objects, in the order of applying them.
func roleObjects(op *dsl.Operator, who account, roles []rbac.Role) (out []map[string]any) {
	for _, role := range roles {
		kind := "Role"
		if role.Namespace == "" {
			kind = "ClusterRole"
		}
		name := objectName(op.Name)
		if role.Namespace != who.namespace {
			name = outside(name, who.namespace)
		}
		out = append(out, roleObject(kind, name, op.Name, role.Namespace, map[string]any{"rules": ruleObjects(role)}),
			roleObject(kind+"Binding", name, op.Name, role.Namespace, map[string]any{
				"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": kind, "name": name},
				"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": who.name, "namespace": who.namespace}},
			}))
	}
	return out
}

// ruleObjects returns the rules of a role in the API's form.
func ruleObjects(role rbac.Role) []any {
	rules := []any{}
	for _, p := range role.Policies {
		rule := map[string]any{"apiGroups": []any{p.Group}, "resources": []any{p.Resource}, "verbs": texts(p.Verbs)}
		if len(p.Names) > 0 {
			rule["resourceNames"] = texts(p.Names)
		}
		rules = append(rules, rule)
	}
	return rules
}

func roleObject(kind, name, operator, namespace string, rest map[string]any) map[string]any {
	metadata := map[string]any{"name": name, "labels": map[string]any{
		"app.kubernetes.io/name": "handwerk", "app.kubernetes.io/instance": operator,
	}}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	rest["apiVersion"], rest["kind"], rest["metadata"] = rbacGroup+"/v1", kind, metadata
	return rest
}

func texts(list []string) []any {
	out := make([]any, len(list))
	for i, text := range list {
		out[i] = text
	}
	return out
}

// writeRoles writes roles for people: each right with the handlers that need it, and the reason.
func writeRoles(w io.Writer, head string, op *dsl.Operator, who account, roles []rbac.Role) error {
	out := yaml.NewEncoder(w)
	out.SetIndent(2)
	for i, object := range roleObjects(op, who, roles) {
		document := nodeOf(object, "apiVersion", "kind", "metadata", "rules", "roleRef", "subjects")
		if i == 0 {
			document.HeadComment = comment(head)
		}
		if rules := below(document, "rules"); rules != nil {
			explain(rules, roles[i/2])
		}
		if err := out.Encode(document); err != nil {
			return err
		}
	}
	return out.Close()
}

// explain puts each rule of a role on its own line, with a comment on the handlers that need it, and the reason.
func explain(rules *yaml.Node, role rbac.Role) {
	rules.Style = 0
	for i, p := range role.Policies {
		rules.Content[i].Style = 0
		rules.Content[i].HeadComment = comment(strings.Join(p.Reasons, "\n"))
	}
}

// comment turns lines into comments.
func comment(text string) string { return "# " + strings.ReplaceAll(text, "\n", "\n# ") }

// nodeOf returns a value as YAML, with maps in the order of keys and deeply nested values on one line.
func nodeOf(value any, keys ...string) *yaml.Node {
	switch value := value.(type) {
	case map[string]any:
		out := &yaml.Node{Kind: yaml.MappingNode}
		if len(keys) == 0 {
			keys = []string{"apiGroup", "apiGroups", "kind", "name", "namespace", "labels", "resources", "resourceNames", "verbs", "app.kubernetes.io/name", "app.kubernetes.io/instance"}
			out.Style = yaml.FlowStyle
		}
		for _, key := range keys {
			if below, found := value[key]; found {
				out.Content = append(out.Content, nodeOf(key), nodeOf(below))
			}
		}
		if metadata := below(out, "metadata"); metadata != nil {
			metadata.Style = 0
		}
		return out
	case []any:
		out := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, element := range value {
			out.Content = append(out.Content, nodeOf(element))
		}
		return out
	default:
		return scalar(value.(string))
	}
}

// quoted returns a text as YAML, in quotes if a reader of YAML 1.1, such as kubectl, would read it as another type:
// yes, 1e3.
func quoted(text string) string {
	out, _ := yaml.Marshal(text) // text always marshals
	return strings.TrimSpace(string(out))
}

// below returns the value of a key, or nil.
func below(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
