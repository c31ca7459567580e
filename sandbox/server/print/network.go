// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package print

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// shownAddresses is how many addresses, ports or hosts a column shows.
const shownAddresses = 3

func clusterIP(o map[string]any) any {
	if list, _ := at(o, "spec.clusterIPs").([]any); len(list) > 0 {
		return fmt.Sprint(list[0])
	}
	return "<none>"
}

func externalIP(o map[string]any) any {
	out := joined(o, "spec.externalIPs", "")
	switch text(o, "spec.type") {
	case "ExternalName":
		return text(o, "spec.externalName")
	case "ClusterIP", "NodePort":
		if out != "" {
			return out
		}
		return "<none>"
	case "LoadBalancer":
		given := addressesOf(o)
		if out != "" {
			given = append(given, out)
		}
		if len(given) > 0 {
			return strings.Join(given, ",")
		}
		return "<pending>"
	}
	return "<unknown>"
}

// addresses are those of the load balancer.
func addresses(o map[string]any) any { return strings.Join(addressesOf(o), ",") }

func addressesOf(o map[string]any) (out []string) {
	for _, item := range each(o, "status.loadBalancer.ingress") {
		if given := textOr(item, "ip", text(item, "hostname")); given != "" {
			out = append(out, given)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func ports(o map[string]any) any {
	var out []string
	for _, p := range each(o, "spec.ports") {
		port := fmt.Sprint(number(p, "port"))
		if node := number(p, "nodePort"); node > 0 {
			port += fmt.Sprint(":", node)
		}
		out = append(out, port+"/"+textOr(p, "protocol", "TCP"))
	}
	if len(out) == 0 {
		return "<none>"
	}
	return strings.Join(out, ",")
}

// hosts are those of the rules of an Ingress. As on a real server, all rules after the shown ones count.
func hosts(o map[string]any) any {
	var out []string
	rules := each(o, "spec.rules")
	for _, r := range rules {
		if len(out) == shownAddresses {
			return fmt.Sprintf("%s + %d more...", strings.Join(out, ","), len(rules)-shownAddresses)
		}
		if host := text(r, "host"); host != "" {
			out = append(out, host)
		}
	}
	if len(out) == 0 {
		return "*"
	}
	return strings.Join(out, ",")
}

func ingressPorts(o map[string]any) any {
	if len(each(o, "spec.tls")) > 0 {
		return "80, 443"
	}
	return "80"
}

// ingressClassName is the name, with a mark of the default class.
func ingressClassName(o map[string]any) any {
	if annotation(o, "ingressclass.kubernetes.io/is-default-class") == "true" {
		return text(o, "metadata.name") + marked
	}
	return text(o, "metadata.name")
}

// classParameters names the parameters of an IngressClass, as Kind.group/name.
func classParameters(o map[string]any) any {
	if at(o, "spec.parameters") == nil {
		return "<none>"
	}
	out := text(o, "spec.parameters.kind")
	if group := at(o, "spec.parameters.apiGroup"); group != nil {
		out += fmt.Sprint(".", group)
	}
	return out + "/" + text(o, "spec.parameters.name")
}

// addressParent names the object that has an IPAddress, as plural.group/namespace/name.
func addressParent(o map[string]any) any {
	if at(o, "spec.parentRef") == nil {
		return "<none>"
	}
	out := text(o, "spec.parentRef.resource")
	if group := text(o, "spec.parentRef.group"); group != "" {
		out += "." + group
	}
	out = strings.ToLower(out)
	if namespace := text(o, "spec.parentRef.namespace"); namespace != "" {
		out += "/" + namespace
	}
	return out + "/" + text(o, "spec.parentRef.name")
}

// endpoints are the addresses of Endpoints, with each of their ports.
func endpoints(o map[string]any) any {
	subsets := each(o, "subsets")
	if len(subsets) == 0 {
		return "<none>"
	}
	var out []string
	for _, subset := range subsets {
		given := texts(anys(each(subset, "addresses")), "ip")
		if len(each(subset, "ports")) == 0 {
			out = append(out, given...)
		}
		for _, port := range each(subset, "ports") {
			for _, ip := range given {
				out = append(out, net.JoinHostPort(ip, fmt.Sprint(number(port, "port"))))
			}
		}
	}
	return shortened(out, shownAddresses, ",")
}

func anys(list []map[string]any) (out []any) {
	for _, each := range list {
		out = append(out, each)
	}
	return out
}

// slicePorts are the ports of an EndpointSlice: numbers, or names, or a star for all.
func slicePorts(o map[string]any) any {
	var out []string
	for _, port := range each(o, "ports") {
		out = append(out, textOr(port, "port", textOr(port, "name", "*")))
		if at(port, "port") == nil && at(port, "name") == "" {
			out[len(out)-1] = ""
		}
	}
	return orUnset(out)
}

func sliceEndpoints(o map[string]any) any {
	var out []string
	for _, endpoint := range each(o, "endpoints") {
		list, _ := at(endpoint, "addresses").([]any)
		out = append(out, texts(list, "")...)
	}
	return orUnset(out)
}

func orUnset(list []string) string {
	if out := shortened(list, shownAddresses, ","); out != "" {
		return out
	}
	return "<unset>"
}
