// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkSecurity checks the users and groups of a Pod.
func checkSecurity(f *findings, path *field.Path, s *corev1.PodSecurityContext) {
	if s == nil {
		return
	}
	checkGroup(f, path.Child("fsGroup"), s.FSGroup)
	checkUser(f, path.Child("runAsUser"), s.RunAsUser)
	checkGroup(f, path.Child("runAsGroup"), s.RunAsGroup)
	for i, group := range s.SupplementalGroups {
		checkGroup(f, path.Child("supplementalGroups").Index(i), &group)
	}
}

// checkContainerSecurity checks the user and the group of a container.
func checkContainerSecurity(f *findings, path *field.Path, s *corev1.SecurityContext) {
	if s == nil {
		return
	}
	checkUser(f, path.Child("runAsUser"), s.RunAsUser)
	checkGroup(f, path.Child("runAsGroup"), s.RunAsGroup)
}

func checkUser(f *findings, path *field.Path, id *int64) {
	if id != nil {
		f.each(path, *id, utilvalidation.IsValidUserID(*id))
	}
}

func checkGroup(f *findings, path *field.Path, id *int64) {
	if id != nil {
		f.each(path, *id, utilvalidation.IsValidGroupID(*id))
	}
}
