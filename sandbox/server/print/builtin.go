// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package print

import (
	_ "embed" // for the columns
	"encoding/json"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// columns has the columns of the built-in resources. `make kinds` makes it from the answers of a real API server.
//
//go:embed columns.json
var columns []byte

// definitions returns the columns of the built-in resources that have some of their own, by group/plural. They are not
// to be changed.
var definitions = sync.OnceValue(func() map[string][]metav1.TableColumnDefinition {
	out := map[string][]metav1.TableColumnDefinition{}
	if err := json.Unmarshal(columns, &out); err != nil {
		panic("print: " + err.Error()) // not reached: a test reads the file
	}
	return out
})

// cells has the cells of the built-in resources by the names of their columns. Name, Age and Created At are the same
// everywhere. Cell explains the form of a cell. A cell without a column stands after the others, as on a real server.
const cells = `
/pods Ready=podReady; Status=podStatus; Restarts=restarts; IP=podIP; Node=spec.nodeName|<none>; Nominated Node=status.nominatedNodeName|<none>; Readiness Gates=readinessGates
/podtemplates Containers=template.spec.containers*name; Images=template.spec.containers*image; Pod Labels={template.metadata.labels
/replicationcontrollers Desired=#spec.replicas; Current=#status.replicas; Ready=#status.readyReplicas; Containers=spec.template.spec.containers*name; Images=spec.template.spec.containers*image; Selector={spec.selector
/services Type=spec.type; Cluster-IP=clusterIP; External-IP=externalIP; Port(s)=ports; Selector={spec.selector
/endpoints Endpoints=endpoints
/nodes Status=nodeStatus; Roles=roles; Version=status.nodeInfo.kubeletVersion; Internal-IP=internalAddress; External-IP=externalAddress; OS-Image=status.nodeInfo.osImage|<unknown>; Kernel-Version=kernel; Container-Runtime=status.nodeInfo.containerRuntimeVersion|<unknown>
/namespaces Status=status.phase
/configmaps Data=%data,binaryData
/secrets Type=type; Data=%data
/serviceaccounts
/componentstatuses Status=componentStatus; Message=componentMessage; Error=componentError
/resourcequotas Request=quotaRequests; Limit=quotaLimits
/persistentvolumeclaims Status=phase; Volume=spec.volumeName; Capacity=claimCapacity; Access Modes=claimModes; StorageClass=storageClass; VolumeAttributesClass=spec.volumeAttributesClassName|<unset>; VolumeMode=spec.volumeMode|<unset>
/persistentvolumes Capacity=volumeCapacity; Access Modes=volumeModes; Reclaim Policy=spec.persistentVolumeReclaimPolicy; Status=phase; Claim=claim; StorageClass=storageClass; VolumeAttributesClass=spec.volumeAttributesClassName|<unset>; Reason=status.reason; VolumeMode=spec.volumeMode|<unset>
/events Last Seen=lastSeen; Type=type; Reason=reason; Object=involved; Subobject=involvedObject.fieldPath; Source=eventSource; Message=eventMessage; First Seen=firstSeen; Count=eventCount
admissionregistration.k8s.io/mutatingadmissionpolicies Mutations=%spec.mutations; ParamKind=paramKind
admissionregistration.k8s.io/mutatingadmissionpolicybindings PolicyName=spec.policyName; ParamRef=paramRef
admissionregistration.k8s.io/mutatingwebhookconfigurations Webhooks=%webhooks
admissionregistration.k8s.io/validatingadmissionpolicies Validations=%spec.validations; ParamKind=paramKind
admissionregistration.k8s.io/validatingadmissionpolicybindings PolicyName=spec.policyName; ParamRef=paramRef
admissionregistration.k8s.io/validatingwebhookconfigurations Webhooks=%webhooks
apiextensions.k8s.io/customresourcedefinitions Scope=spec.scope; Versions=servedVersions; Group=spec.group; Kind=spec.names.kind; ShortNames=spec.names.shortNames*; Established=established
apiregistration.k8s.io/apiservices Service=apiService; Available=apiAvailable
apps/controllerrevisions Controller=controller; Revision=#revision
apps/deployments Ready=ready; Up-to-date=#status.updatedReplicas; Available=#status.availableReplicas; Containers=spec.template.spec.containers*name; Images=spec.template.spec.containers*image; Selector=~spec.selector
apps/replicasets Desired=#spec.replicas; Current=#status.replicas; Ready=#status.readyReplicas; Containers=spec.template.spec.containers*name; Images=spec.template.spec.containers*image; Selector=~spec.selector
apps/statefulsets Ready=ready; Containers=spec.template.spec.containers*name; Images=spec.template.spec.containers*image
apps/daemonsets Desired=#status.desiredNumberScheduled; Current=#status.currentNumberScheduled; Ready=#status.numberReady; Up-to-date=#status.updatedNumberScheduled; Available=#status.numberAvailable; Node Selector={spec.template.spec.nodeSelector; Containers=spec.template.spec.containers*name; Images=spec.template.spec.containers*image; Selector=~spec.selector
autoscaling/horizontalpodautoscalers Reference=scaled; Targets=targets; MinPods=spec.minReplicas|<unset>; MaxPods=#spec.maxReplicas; Replicas=#status.currentReplicas
batch/jobs Status=jobStatus; Completions=completions; Duration=took; Containers=spec.template.spec.containers*name; Images=spec.template.spec.containers*image; Selector=~spec.selector
batch/cronjobs Schedule=spec.schedule; Timezone=spec.timeZone|<none>; Suspend=suspend; Active=%status.active; Last Schedule=@status.lastScheduleTime|<none>; Containers=spec.jobTemplate.spec.template.spec.containers*name; Images=spec.jobTemplate.spec.template.spec.containers*image; Selector=~spec.jobTemplate.spec.selector
certificates.k8s.io/certificatesigningrequests SignerName=spec.signerName|<none>; Requestor=spec.username; RequestedDuration=certificateDuration; Condition=certificateStatus
certificates.k8s.io/clustertrustbundles SignerName=spec.signerName|<none>
certificates.k8s.io/podcertificaterequests PodName=spec.podName; ServiceAccountName=spec.serviceAccountName; NodeName=spec.nodeName; SignerName=spec.signerName; State=podCertificateState; UnverifiedUserAnnotations={spec.unverifiedUserAnnotations
coordination.k8s.io/leases Holder=spec.holderIdentity
discovery.k8s.io/endpointslices AddressType=addressType; Ports=slicePorts; Endpoints=sliceEndpoints
flowcontrol.apiserver.k8s.io/flowschemas PriorityLevel=spec.priorityLevelConfiguration.name; MatchingPrecedence=#spec.matchingPrecedence; DistinguisherMethod=spec.distinguisherMethod.type|<none>; MissingPL=missingLevel
flowcontrol.apiserver.k8s.io/prioritylevelconfigurations Type=spec.type; NominalConcurrencyShares=#spec.limited.nominalConcurrencyShares|<none>; Queues=#spec.limited.limitResponse.queuing.queues|<none>; HandSize=#spec.limited.limitResponse.queuing.handSize|<none>; QueueLengthLimit=#spec.limited.limitResponse.queuing.queueLengthLimit|<none>
networking.k8s.io/ingresses Class=spec.ingressClassName|<none>; Hosts=hosts; Address=addresses; Ports=ingressPorts
networking.k8s.io/ingressclasses Name=ingressClassName; Controller=spec.controller; Parameters=classParameters
networking.k8s.io/ipaddresses ParentRef=addressParent; Age=@metadata.creationTimestamp|<unknown>
networking.k8s.io/networkpolicies Pod-Selector=~spec.podSelector
networking.k8s.io/servicecidrs CIDRs=spec.cidrs*
node.k8s.io/runtimeclasses Handler=handler
policy/poddisruptionbudgets Min Available=spec.minAvailable|N/A; Max Unavailable=spec.maxUnavailable|N/A; Allowed Disruptions=#status.disruptionsAllowed
rbac.authorization.k8s.io/rolebindings Role=role; Users=users; Groups=groups; ServiceAccounts=accounts
rbac.authorization.k8s.io/clusterrolebindings Role=role; Users=users; Groups=groups; ServiceAccounts=accounts
resource.k8s.io/deviceclasses
resource.k8s.io/devicetaintrules Key=spec.taint.key; Value=spec.taint.value; Effect=spec.taint.effect; TimeAdded=@spec.taint.timeAdded
resource.k8s.io/resourceclaims State=claimState
resource.k8s.io/resourceclaimtemplates
resource.k8s.io/resourceslices Node=spec.nodeName; Driver=spec.driver; Pool=spec.pool.name
scheduling.k8s.io/priorityclasses Value=#value; Global-Default=?globalDefault; PreemptionPolicy=preemptionPolicy
storagemigration.k8s.io/storageversionmigrations Resource=migrated; Status=migrationStatus
storage.k8s.io/csidrivers AttachRequired=?spec.attachRequired|true; PodInfoOnMount=?spec.podInfoOnMount; StorageCapacity=?spec.storageCapacity; TokenRequests=tokenAudiences; RequiresRepublish=?spec.requiresRepublish; Modes=lifecycleModes
storage.k8s.io/csinodes Drivers=%spec.drivers
storage.k8s.io/storageclasses Provisioner=provisioner; ReclaimPolicy=reclaimPolicy|Delete; VolumeBindingMode=volumeBindingMode|Immediate; AllowVolumeExpansion=?allowVolumeExpansion
storage.k8s.io/volumeattachments Attacher=spec.attacher; PV=spec.source.persistentVolumeName; Node=spec.nodeName; Attached=?status.attached
storage.k8s.io/volumeattributesclasses DriverName=driverName`

// For returns the columns of the objects of a built-in resource.
func For(group, plural string) []Column {
	if group == "events.k8s.io" && plural == "events" {
		group = "" // they are the same objects
	}
	known, found := definitions()[group+"/"+plural]
	if !found {
		return []Column{nameColumn(), createdColumn()}
	}
	var out []Column
	special := cellsOf(group + "/" + plural)
	for _, d := range known {
		c := Column{d, special[d.Name]}
		switch {
		case c.cell != nil:
		case d.Name == "Name":
			c.cell = nameColumn().cell
		case d.Name == "Age":
			c.cell = ageColumn().cell
		case d.Name == "Created At":
			c.cell = createdColumn().cell
		default:
			c.cell = timeless(func(map[string]any) any { return "<unknown>" })
		}
		delete(special, d.Name)
		if d.Description == "" {
			c.Description = commonTexts()[d.Name]
		}
		out = append(out, c)
	}
	for _, cell := range special { // at most one
		out = append(out, Column{cell: cell})
	}
	return out
}

// cellsOf returns the cells of a built-in resource by the names of their columns.
func cellsOf(resource string) map[string]cell {
	out := map[string]cell{}
	for row := range strings.Lines(cells) {
		name, rest, _ := strings.Cut(strings.TrimSpace(row), " ")
		if name != resource || rest == "" {
			continue
		}
		for each := range strings.SplitSeq(rest, "; ") {
			column, cell, _ := strings.Cut(each, "=")
			out[column] = cellOf(cell)
		}
	}
	return out
}

// commonTexts returns the descriptions of columns that most resources have. They are not to be changed.
var commonTexts = sync.OnceValue(func() map[string]string {
	texts := metav1.ObjectMeta{}.SwaggerDoc()
	return map[string]string{"Name": texts["name"], "Age": texts["creationTimestamp"], "Created At": texts["creationTimestamp"]}
})
