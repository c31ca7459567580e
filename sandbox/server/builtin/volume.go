// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkVolumes checks the volumes of a Pod, and returns the names of those that can be mounted.
func checkVolumes(f *findings, path *field.Path, volumes []corev1.Volume) map[string]bool {
	names := map[string]bool{}
	for i := range volumes {
		v, at, before := &volumes[i], path.Index(i), len(f.list)
		checkVolume(f, at, &v.VolumeSource)
		if f.filled(at.Child("name"), v.Name) {
			f.each(at.Child("name"), v.Name, utilvalidation.IsDNS1123Label(v.Name))
		}
		if names[v.Name] {
			f.duplicate(at.Child("name"), v.Name)
		}
		if len(f.list) == before {
			names[v.Name] = true
		}
	}
	return names
}

// checkVolume checks that a volume has one source, and the usual sources.
func checkVolume(f *findings, path *field.Path, v *corev1.VolumeSource) {
	checkOneSource(f, path, v)
	if v.HostPath != nil && f.filled(path.Child("hostPath", "path"), v.HostPath.Path) {
		checkNoStepsBack(f, path.Child("hostPath", "path"), v.HostPath.Path)
		supportedIf(f, path.Child("hostPath", "type"), v.HostPath.Type, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
			corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket, corev1.HostPathUnset)
	}
	if v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() < 0 {
		f.forbidden(path.Child("emptyDir", "sizeLimit"), "SizeLimit field must be a valid resource quantity")
	}
	if v.Secret != nil {
		f.filled(path.Child("secret", "secretName"), v.Secret.SecretName)
		checkMode(f, path.Child("secret", "defaultMode"), v.Secret.DefaultMode)
		checkItems(f, path.Child("secret", "items"), v.Secret.Items)
	}
	if v.ConfigMap != nil {
		f.filled(path.Child("configMap", "name"), v.ConfigMap.Name)
		checkMode(f, path.Child("configMap", "defaultMode"), v.ConfigMap.DefaultMode)
		checkItems(f, path.Child("configMap", "items"), v.ConfigMap.Items)
	}
	if v.PersistentVolumeClaim != nil {
		f.filled(path.Child("persistentVolumeClaim", "claimName"), v.PersistentVolumeClaim.ClaimName)
	}
	if v.NFS != nil {
		f.filled(path.Child("nfs", "server"), v.NFS.Server)
		f.filled(path.Child("nfs", "path"), v.NFS.Path)
	}
	if v.Projected != nil {
		checkProjected(f, path.Child("projected"), v.Projected)
	}
}

// checkOneSource checks that a volume has one source. Their fields are all pointers.
func checkOneSource(f *findings, path *field.Path, v *corev1.VolumeSource) {
	value, count := reflect.ValueOf(v).Elem(), 0
	for i := range value.NumField() {
		if value.Field(i).IsNil() {
			continue
		}
		if count++; count > 1 {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			f.forbidden(path.Child(name), "may not specify more than 1 volume type")
		}
	}
}

func checkProjected(f *findings, path *field.Path, p *corev1.ProjectedVolumeSource) {
	checkMode(f, path.Child("defaultMode"), p.DefaultMode)
	for i, source := range p.Sources {
		at := path.Child("sources").Index(i)
		if source.Secret != nil {
			f.filled(at.Child("secret", "name"), source.Secret.Name)
			checkItems(f, at.Child("secret", "items"), source.Secret.Items)
		}
		if source.ConfigMap != nil {
			f.filled(at.Child("configMap", "name"), source.ConfigMap.Name)
			checkItems(f, at.Child("configMap", "items"), source.ConfigMap.Items)
		}
	}
}

// checkItems checks which keys become which files.
func checkItems(f *findings, path *field.Path, items []corev1.KeyToPath) {
	for i, item := range items {
		at := path.Index(i)
		f.filled(at.Child("key"), item.Key)
		f.filled(at.Child("path"), item.Path)
		checkRelative(f, at.Child("path"), item.Path)
		if strings.HasPrefix(item.Path, "..") && !strings.HasPrefix(item.Path, "../") {
			f.invalid(at.Child("path"), item.Path, "must not start with '..'")
		}
		checkMode(f, at.Child("mode"), item.Mode)
	}
}

func checkMode(f *findings, path *field.Path, mode *int32) {
	if mode != nil && (*mode > 0o777 || *mode < 0) {
		f.invalid(path, *mode, "must be a number between 0 and 0777 (octal), both inclusive")
	}
}

// checkRelative checks a path below another.
func checkRelative(f *findings, path *field.Path, name string) {
	if strings.HasPrefix(name, "/") {
		f.invalid(path, name, "must be a relative path")
	}
	checkNoStepsBack(f, path, name)
}

func checkNoStepsBack(f *findings, path *field.Path, name string) {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			f.invalid(path, name, "must not contain '..'")
			return
		}
	}
}

// checkClass checks the name of a class.
func checkClass(f *findings, path *field.Path, name *string) {
	if name != nil && *name != "" {
		f.each(path, *name, validation.NameIsDNSSubdomain(*name, false))
	}
}
