// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// ownService is the name of the Service by which Pods reach the API server.
	ownService = "kubernetes"
	// ownAddress is the first one of the Services' addresses, as in a real cluster.
	ownAddress = "10.96.0.1"
	// ownPort is the usual port of an API server, and ownHost an address that is nobody's: nothing runs in a Pod that could connect.
	ownPort, ownHost = int64(6443), "192.0.2.1"
	// clusterCritical and nodeCritical are the names of the PriorityClasses of the programs of a cluster.
	clusterCritical, nodeCritical = "system-cluster-critical", "system-node-critical"
	// systemPriority is that of the programs of a cluster. Pods of others have lower ones.
	systemPriority = int64(2000000000)
)

func priorityClasses() schema.GroupResource {
	return schema.GroupResource{Group: schedulingv1.GroupName, Resource: "priorityclasses"}
}

// publish makes the objects of the API server unless they are there: its Service, with Endpoints and EndpointSlice, and the
// PriorityClasses of a cluster's own programs.
func (s *Server) publish() {
	slices := schema.GroupResource{Group: discoveryv1.GroupName, Resource: "endpointslices"}
	if s.garbage == nil || s.tables[slices] == nil {
		return
	}
	s.add(apiServer, priorityClasses(), "", clusterCritical, map[string]any{
		"value":       systemPriority,
		"description": "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
	})
	s.add(apiServer, priorityClasses(), "", nodeCritical, map[string]any{
		"value":       systemPriority + 1000,
		"description": "Used for system critical pods that must not be moved from their current node.",
	})
	port := map[string]any{"name": "https", "port": ownPort, "protocol": "TCP"}
	add := func(resource schema.GroupResource, labels map[string]any, object map[string]any) {
		object["metadata"] = map[string]any{"labels": labels}
		s.add(apiServer, resource, metav1.NamespaceDefault, ownService, object)
	}
	add(schema.GroupResource{Resource: "services"}, map[string]any{"component": "apiserver", "provider": "kubernetes"}, map[string]any{
		"spec": map[string]any{
			"clusterIP": ownAddress, "ipFamilyPolicy": "SingleStack",
			"ports": []any{map[string]any{"name": "https", "port": int64(443), "protocol": "TCP", "targetPort": ownPort}},
		},
	})
	add(schema.GroupResource{Resource: "endpoints"}, map[string]any{discoveryv1.LabelSkipMirror: "true"}, map[string]any{
		"subsets": []any{map[string]any{"addresses": []any{map[string]any{"ip": ownHost}}, "ports": []any{port}}},
	})
	add(slices, map[string]any{discoveryv1.LabelServiceName: ownService}, map[string]any{
		"addressType": string(discoveryv1.AddressTypeIPv4),
		"endpoints":   []any{map[string]any{"addresses": []any{ownHost}, "conditions": map[string]any{"ready": true}}},
		"ports":       []any{port},
	})
}
