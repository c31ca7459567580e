// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkEnv checks the environment variables of a container.
func checkEnv(f *findings, path *field.Path, c *corev1.Container) {
	for i, v := range c.Env {
		at := path.Child("env").Index(i)
		if f.filled(at.Child("name"), v.Name) {
			f.each(at.Child("name"), v.Name, utilvalidation.IsRelaxedEnvVarName(v.Name))
		}
		if v.ValueFrom != nil {
			checkSource(f, at.Child("valueFrom"), v)
		}
	}
	from := path.Child("envFrom")
	for i, v := range c.EnvFrom {
		at, sources := from.Index(i), 0
		if v.Prefix != "" {
			f.each(at.Child("prefix"), v.Prefix, utilvalidation.IsRelaxedEnvVarName(v.Prefix))
		}
		if v.ConfigMapRef != nil {
			sources++
			checkName(f, at.Child("configMapRef", "name"), v.ConfigMapRef.Name)
		}
		if v.SecretRef != nil {
			sources++
			checkName(f, at.Child("secretRef", "name"), v.SecretRef.Name)
		}
		switch sources {
		case 0:
			f.invalid(from, "", "must specify one of: `configMapRef` or `secretRef`")
		case 2:
			f.invalid(from, "", "may not have more than one field specified at a time")
		}
	}
}

// checkName checks the required name of another object.
func checkName(f *findings, path *field.Path, name string) {
	if f.filled(path, name) {
		f.each(path, name, validation.NameIsDNSSubdomain(name, true))
	}
}

// checkSource checks from where the value of a variable comes.
func checkSource(f *findings, path *field.Path, v corev1.EnvVar) {
	sources, from := 0, v.ValueFrom
	if from.FieldRef != nil {
		sources++
		checkFieldRef(f, path.Child("fieldRef"), from.FieldRef.FieldPath)
	}
	if from.ResourceFieldRef != nil {
		sources++
		f.filled(path.Child("resourceFieldRef", "resource"), from.ResourceFieldRef.Resource)
	}
	if from.ConfigMapKeyRef != nil {
		sources++
		checkKey(f, path.Child("configMapKeyRef"), from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)
	}
	if from.SecretKeyRef != nil {
		sources++
		checkKey(f, path.Child("secretKeyRef"), from.SecretKeyRef.Name, from.SecretKeyRef.Key)
	}
	if from.FileKeyRef != nil {
		sources++
	}
	switch {
	case sources == 0:
		f.invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
	case v.Value != "":
		f.invalid(path, "", "may not be specified when `value` is not empty")
	case sources > 1:
		f.invalid(path, "", "may not have more than one field specified at a time")
	}
}

// checkKey checks a reference to a key of a ConfigMap or a Secret.
func checkKey(f *findings, path *field.Path, name, key string) {
	f.each(path.Child("name"), name, validation.NameIsDNSSubdomain(name, false))
	if f.filled(path.Child("key"), key) {
		f.each(path.Child("key"), key, utilvalidation.IsConfigMapKey(key))
	}
}

// checkFieldRef checks the path of a Pod's own field.
func checkFieldRef(f *findings, path *field.Path, name string) {
	known := []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
	switch {
	case !f.filled(path.Child("fieldPath"), name), strings.HasPrefix(name, "metadata.labels['"), strings.HasPrefix(name, "metadata.annotations['"):
		return
	case name == "metadata.labels", name == "metadata.annotations":
		supported(f, path.Child("fieldPath"), name, known...)
		return
	}
	if slices.Contains(known, name) {
		return
	}
	f.invalid(path.Child("fieldPath"), name, "error converting fieldPath: field label not supported: "+name)
}
