// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package print

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// subjects are the names of those subjects of a binding that are of a kind.
func subjects(o map[string]any, kind string) string {
	var out []string
	for _, subject := range each(o, "subjects") {
		switch {
		case text(subject, "kind") != kind:
		case kind == "ServiceAccount" && text(subject, "namespace") != "":
			out = append(out, text(subject, "namespace")+"/"+text(subject, "name"))
		default:
			out = append(out, text(subject, "name"))
		}
	}
	return strings.Join(out, ", ")
}

// certificateStatus is the state of a CertificateSigningRequest.
func certificateStatus(o map[string]any) any {
	has := func(kind string) bool { return condition(o, "status.conditions", kind) != nil }
	out := "Pending"
	switch {
	case has("Denied"):
		out = "Denied"
	case has("Approved"):
		out = "Approved"
	}
	if has("Failed") {
		out += ",Failed"
	}
	if text(o, "status.certificate") != "" {
		out += ",Issued"
	}
	return out
}

func certificateDuration(o map[string]any) any {
	if at(o, "spec.expirationSeconds") == nil {
		return "<none>"
	}
	return duration.HumanDuration(time.Duration(number(o, "spec.expirationSeconds")) * time.Second)
}

func podCertificateState(o map[string]any) any {
	out := "Pending"
	for _, c := range each(o, "status.conditions") {
		switch kind := text(c, "type"); kind {
		case "Issued", "Denied", "Failed":
			out = kind
		}
	}
	return out
}
