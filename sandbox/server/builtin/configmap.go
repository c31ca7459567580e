// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// unchanging is why nothing in an immutable ConfigMap or Secret can change.
	unchanging = "field is immutable when `immutable` is set"
	// hidden stands for what a Secret contains.
	hidden = "<secret contents redacted>"
)

func fillConfigMap(c *corev1.ConfigMap) {
	if len(c.Data) == 0 {
		c.Data = nil
	}
}

// checkConfigMap checks a ConfigMap.
func checkConfigMap(f *findings, next, old *corev1.ConfigMap) {
	if old != nil && old.Immutable != nil && *old.Immutable {
		checkStillImmutable(f, next.Immutable)
		if !same(next.Data, old.Data) {
			f.forbidden(field.NewPath("data"), unchanging)
		}
		if !same(next.BinaryData, old.BinaryData) {
			f.forbidden(field.NewPath("binaryData"), unchanging)
		}
	}
	size, data := 0, field.NewPath("data")
	for _, key := range slices.Sorted(maps.Keys(next.Data)) {
		f.each(data.Key(key), key, utilvalidation.IsConfigMapKey(key))
		if _, twice := next.BinaryData[key]; twice {
			f.invalid(data.Key(key), key, "duplicate of key present in binaryData")
		}
		size += len(next.Data[key])
	}
	size += checkKeys(f, field.NewPath("binaryData"), next.BinaryData)
	if size > corev1.MaxSecretSize {
		f.list = append(f.list, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
}

// same reports whether two maps have the same entries.
func same[V any](a, b map[string]V) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func checkStillImmutable(f *findings, immutable *bool) {
	if immutable == nil || !*immutable {
		f.forbidden(field.NewPath("immutable"), unchanging)
	}
}

// checkKeys checks keys of data, and returns the size of the data.
func checkKeys(f *findings, path *field.Path, data map[string][]byte) (size int) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		f.each(path.Key(key), key, utilvalidation.IsConfigMapKey(key))
		size += len(data[key])
	}
	return size
}

// fillSecret sets the type of a Secret, and encodes its texts.
func fillSecret(s *corev1.Secret) {
	orElse(&s.Type, corev1.SecretTypeOpaque)
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for key, text := range s.StringData {
		s.Data[key] = []byte(text)
	}
	s.StringData = nil
}

// checkSecret checks a Secret.
func checkSecret(f *findings, next, old *corev1.Secret) {
	if old != nil {
		f.fixed(field.NewPath("type"), next.Type, old.Type)
		if old.Immutable != nil && *old.Immutable {
			checkStillImmutable(f, next.Immutable)
			if !maps.EqualFunc(next.Data, old.Data, bytes.Equal) {
				f.forbidden(field.NewPath("data"), unchanging)
			}
		}
	}
	checkType(f, next)
}

// checkType checks that a Secret has the data of its type.
func checkType(f *findings, next *corev1.Secret) {
	data := field.NewPath("data")
	if checkKeys(f, data, next.Data) > corev1.MaxSecretSize {
		f.list = append(f.list, field.TooLong(data, "", corev1.MaxSecretSize))
	}
	has := func(key string) bool { _, found := next.Data[key]; return found }
	switch next.Type {
	case corev1.SecretTypeServiceAccountToken:
		f.filled(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), next.Annotations[corev1.ServiceAccountNameKey])
	case corev1.SecretTypeDockercfg:
		checkJSON(f, data, next.Data, corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		checkJSON(f, data, next.Data, corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		if !has(corev1.BasicAuthUsernameKey) && !has(corev1.BasicAuthPasswordKey) {
			f.required(data.Key(corev1.BasicAuthUsernameKey), "")
			f.required(data.Key(corev1.BasicAuthPasswordKey), "")
		}
	case corev1.SecretTypeSSHAuth:
		f.filled(data.Key(corev1.SSHAuthPrivateKey), string(next.Data[corev1.SSHAuthPrivateKey]))
	case corev1.SecretTypeTLS:
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			if !has(key) {
				f.required(data.Key(key), "")
			}
		}
	}
}

// checkJSON checks that data has a key, and JSON in it.
func checkJSON(f *findings, path *field.Path, data map[string][]byte, key string) {
	value, found := data[key]
	if !found {
		f.required(path.Key(key), "")
		return
	}
	if err := json.Unmarshal(value, &map[string]any{}); err != nil {
		f.invalid(path.Key(key), hidden, err.Error())
	}
}
