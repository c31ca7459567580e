// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// resource is a kind of objects that can be stored.
type resource struct {
	group, plural, kind string
	singular            string
	// short names and categories are what kubectl takes for the plural.
	short, categories []string
	versions          []string // the preferred one first
	// defined are all versions of a CRD, those that are not served among them.
	defined []string
	// storage is the version in which objects are stored; empty for a built-in resource with one version.
	storage    string
	namespaced bool
	// status: it has a status subresource.
	status bool
	// scale has the paths of its scale subresource; nil if it has none.
	scale *scaling
	// fields are those that a field selector may use, by version.
	fields map[string][]string
	// generation: its objects have one.
	generation bool
	// typed: server-side apply knows its fields; otherwise lists are atomic.
	typed bool
	// deprecated are the warnings of versions that are deprecated, by version.
	deprecated map[string]string
	// custom: it comes from a CRD.
	custom bool
}

// become takes over what a changed CRD may change: its group, its plural and its kind stay. Lists and watches read them
// without the server's lock.
func (r *resource) become(next resource) {
	r.singular, r.short, r.categories = next.singular, next.short, next.categories
	r.versions, r.defined, r.storage, r.deprecated, r.fields = next.versions, next.defined, next.storage, next.deprecated, next.fields
	r.namespaced, r.status, r.scale = next.namespaced, next.status, next.scale
}

func (r *resource) name() schema.GroupResource {
	return schema.GroupResource{Group: r.group, Resource: r.plural}
}

func (r *resource) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.group, Kind: r.kind}
}

func (r *resource) apiVersion(version string) string {
	return schema.GroupVersion{Group: r.group, Version: version}.String()
}

func namespaces() schema.GroupResource { return schema.GroupResource{Resource: "namespaces"} }

func crds() schema.GroupResource {
	return schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
}

// resources returns the resources that a server has from its start. If it has schemas, server-side apply knows the
// fields of all their kinds.
func (s Settings) resources() []resource {
	out := slices.Clone(builtins())
	if s.AllKinds {
		out = append(out, rareBuiltins()...)
	}
	for i, r := range out {
		kind := schema.GroupVersionKind{Group: r.group, Version: r.versions[0], Kind: r.kind}
		out[i].generation = r.generation || s.Schemas != nil && r.kind == "HorizontalPodAutoscaler"
		if s.Schemas != nil && r.kind == "Endpoints" {
			out[i].deprecated = map[string]string{"v1": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}
		}
		if s.Schemas == nil && !r.custom { // conversion needs schemas
			out[i].versions, out[i].storage = r.versions[:1], ""
		}
		out[i].typed = r.typed || s.Schemas != nil && scheme.Scheme.Recognizes(kind)
	}
	return out
}

// builtins returns the resources that every server has: those that operators are likely to use. They are not to be changed.
var builtins = sync.OnceValue(func() []resource {
	return resources(`
		/v1 configmaps ConfigMap n
		/v1 endpoints Endpoints n
		/v1 events Event n
		/v1 limitranges LimitRange nt
		/v1 namespaces Namespace s
		/v1 nodes Node st
		/v1 persistentvolumeclaims PersistentVolumeClaim nst
		/v1 persistentvolumes PersistentVolume st
		/v1 pods Pod nsgt
		/v1 resourcequotas ResourceQuota nst
		/v1 secrets Secret n
		/v1 serviceaccounts ServiceAccount nt
		/v1 services Service nst
		admissionregistration.k8s.io/v1 mutatingadmissionpolicies MutatingAdmissionPolicy g
		admissionregistration.k8s.io/v1 mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding g
		admissionregistration.k8s.io/v1 mutatingwebhookconfigurations MutatingWebhookConfiguration g
		admissionregistration.k8s.io/v1 validatingadmissionpolicies ValidatingAdmissionPolicy sg
		admissionregistration.k8s.io/v1 validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding g
		admissionregistration.k8s.io/v1 validatingwebhookconfigurations ValidatingWebhookConfiguration g
		apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition sg
		apps/v1 controllerrevisions ControllerRevision n
		apps/v1 daemonsets DaemonSet nsgt
		apps/v1 deployments Deployment nsgt
		apps/v1 replicasets ReplicaSet nsgt
		apps/v1 statefulsets StatefulSet nsgt
		autoscaling/v2,v1 horizontalpodautoscalers HorizontalPodAutoscaler nst
		batch/v1 cronjobs CronJob nsgt
		batch/v1 jobs Job nsgt
		coordination.k8s.io/v1 leases Lease n
		events.k8s.io/v1 events Event n
		networking.k8s.io/v1 ingresses Ingress nsgt
		networking.k8s.io/v1 networkpolicies NetworkPolicy ngt
		policy/v1 poddisruptionbudgets PodDisruptionBudget nsgt
		rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding t
		rbac.authorization.k8s.io/v1 clusterroles ClusterRole t
		rbac.authorization.k8s.io/v1 rolebindings RoleBinding nt
		rbac.authorization.k8s.io/v1 roles Role nt
		storage.k8s.io/v1 storageclasses StorageClass t`)
})

// rareBuiltins returns the other resources of a usual cluster. They are not to be changed.
var rareBuiltins = sync.OnceValue(func() []resource {
	return resources(`
		/v1 podtemplates PodTemplate ng
		/v1 replicationcontrollers ReplicationController nsg
		apiregistration.k8s.io/v1 apiservices APIService s
		certificates.k8s.io/v1 certificatesigningrequests CertificateSigningRequest s
		discovery.k8s.io/v1 endpointslices EndpointSlice ng
		flowcontrol.apiserver.k8s.io/v1 flowschemas FlowSchema sg
		flowcontrol.apiserver.k8s.io/v1 prioritylevelconfigurations PriorityLevelConfiguration sg
		networking.k8s.io/v1 ingressclasses IngressClass g
		networking.k8s.io/v1 ipaddresses IPAddress -
		networking.k8s.io/v1 servicecidrs ServiceCIDR s
		node.k8s.io/v1 runtimeclasses RuntimeClass -
		resource.k8s.io/v1 deviceclasses DeviceClass g
		resource.k8s.io/v1 resourceclaims ResourceClaim ns
		resource.k8s.io/v1 resourceclaimtemplates ResourceClaimTemplate n
		resource.k8s.io/v1 resourceslices ResourceSlice g
		scheduling.k8s.io/v1 priorityclasses PriorityClass g
		storagemigration.k8s.io/v1 storageversionmigrations StorageVersionMigration s
		storage.k8s.io/v1 csidrivers CSIDriver -
		storage.k8s.io/v1 csinodes CSINode -
		storage.k8s.io/v1 csistoragecapacities CSIStorageCapacity n
		storage.k8s.io/v1 volumeattachments VolumeAttachment s
		storage.k8s.io/v1 volumeattributesclasses VolumeAttributesClass -`)
})

// resources reads resources, one in each row. Of several versions the first one is preferred, and objects are stored in it.
// The last column: n namespaced, s status, g generation, t typed.
func resources(rows string) (out []resource) {
	for row := range strings.Lines(strings.TrimSpace(rows)) {
		columns := append(strings.Fields(row), "")
		group, list, _ := strings.Cut(columns[0], "/")
		versions, fields, storage := strings.Split(list, ","), map[string][]string{}, ""
		for _, version := range versions {
			fields[version] = builtinFields(group, columns[1])
		}
		if len(versions) > 1 {
			storage = versions[0]
		}
		has := func(letter string) bool { return strings.Contains(columns[3], letter) }
		short, categories := nicknames(group, columns[1])
		out = append(out, resource{
			scale: builtinScaling(group, columns[1]), fields: fields,
			singular: strings.ToLower(columns[2]), short: short, categories: categories,
			group: group, versions: versions, storage: storage, plural: columns[1], kind: columns[2],
			namespaced: has("n"), status: has("s"), generation: has("g"), typed: has("t"),
		})
	}
	return out
}
