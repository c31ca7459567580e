// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import "strings"

// nicknames returns the short names and the categories of a built-in resource.
func nicknames(group, plural string) (short, categories []string) {
	const rows = `
		/configmaps cm
		/endpoints ep
		/events ev
		/limitranges limits
		/namespaces ns
		/nodes no
		/persistentvolumeclaims pvc
		/persistentvolumes pv
		/pods po all
		/replicationcontrollers rc all
		/resourcequotas quota
		/serviceaccounts sa
		/services svc all
		admissionregistration.k8s.io/mutatingadmissionpolicies - api-extensions
		admissionregistration.k8s.io/mutatingadmissionpolicybindings - api-extensions
		admissionregistration.k8s.io/mutatingwebhookconfigurations - api-extensions
		admissionregistration.k8s.io/validatingadmissionpolicies - api-extensions
		admissionregistration.k8s.io/validatingadmissionpolicybindings - api-extensions
		admissionregistration.k8s.io/validatingwebhookconfigurations - api-extensions
		apiextensions.k8s.io/customresourcedefinitions crd,crds api-extensions
		apiregistration.k8s.io/apiservices - api-extensions
		apps/daemonsets ds all
		apps/deployments deploy all
		apps/replicasets rs all
		apps/statefulsets sts all
		autoscaling/horizontalpodautoscalers hpa all
		batch/cronjobs cj all
		batch/jobs - all
		certificates.k8s.io/certificatesigningrequests csr
		events.k8s.io/events ev
		networking.k8s.io/ingresses ing
		networking.k8s.io/ipaddresses ip
		networking.k8s.io/networkpolicies netpol
		policy/poddisruptionbudgets pdb
		scheduling.k8s.io/priorityclasses pc
		storage.k8s.io/storageclasses sc
		storage.k8s.io/volumeattributesclasses vac`
	for row := range strings.Lines(rows) {
		columns := strings.Fields(row)
		if len(columns) == 0 || columns[0] != group+"/"+plural {
			continue
		}
		if columns[1] != "-" {
			short = strings.Split(columns[1], ",")
		}
		return short, columns[2:]
	}
	return nil, nil
}
