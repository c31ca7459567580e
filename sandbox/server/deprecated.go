// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	"k8s.io/apimachinery/pkg/version"
)

// deprecations returns the warnings of the deprecated versions of a CRD: its own texts, or those of a real server, which
// names the newest version that is not deprecated.
func deprecations(r resource, versions []any) map[string]string {
	out := map[string]string{}
	for _, item := range versions {
		v, _ := item.(map[string]any)
		name, _ := v["name"].(string)
		if v["deprecated"] != true {
			continue
		}
		if text, found := v["deprecationWarning"].(string); found {
			out[name] = text
			continue
		}
		out[name] = fmt.Sprintf("%s %s is deprecated", r.apiVersion(name), r.kind)
		if better := newest(versions, name); better != "" {
			out[name] += fmt.Sprintf("; use %s %s", r.apiVersion(better), r.kind)
		}
	}
	return out
}

// newest returns the newest served version that is newer than the given one and not deprecated. It is empty without such a
// version.
func newest(versions []any, after string) string {
	out := after
	for _, item := range versions {
		v, _ := item.(map[string]any)
		name, _ := v["name"].(string)
		if v["served"] == true && v["deprecated"] != true && version.CompareKubeAwareVersionStrings(out, name) < 0 {
			out = name
		}
	}
	if out == after {
		return ""
	}
	return out
}
