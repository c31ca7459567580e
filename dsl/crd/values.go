// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// The groups of types that markers apply to.
const (
	classText    = "text"
	classInteger = "integers"
	classNumber  = "numbers"
	classBoolean = "booleans"
	classEither  = "int-or-string and quantity"
	classList    = "lists"
	classMap     = "maps"
	classObject  = "objects"
	classAny     = "values of any form"
)

func classOf(s *apiextensions.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return classEither
	case s.Type == "array":
		return classList
	case s.Type == "object" && s.AdditionalProperties != nil:
		return classMap
	case s.Type == "object":
		return classObject
	case s.Type == "integer":
		return classInteger
	case s.Type == "number":
		return classNumber
	case s.Type == "boolean":
		return classBoolean
	case s.Type == "":
		return classAny
	default:
		return classText
	}
}

// scalar reads a marker's value as one of its field's type, in JSON.
func scalar(c string, m *marker) (json.RawMessage, error) {
	switch c {
	case classInteger:
		n, err := strconv.ParseInt(m.value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("want an integer, found %s", form.Quoted(m.value))
		}
		return json.Marshal(n)
	case classNumber:
		n, err := strconv.ParseFloat(m.value, 64)
		if err != nil {
			return nil, fmt.Errorf("want a number, found %s", form.Quoted(m.value))
		}
		raw, err := json.Marshal(n)
		if err != nil {
			return nil, fmt.Errorf("want a number that JSON can hold, found %s", form.Quoted(m.value))
		}
		return raw, nil
	case classBoolean:
		if m.value != "true" && m.value != "false" {
			return nil, fmt.Errorf("want true or false, found %s", form.Quoted(m.value))
		}
		return json.RawMessage(m.value), nil
	case classAny:
		if json.Valid([]byte(m.value)) && !m.quoted {
			return json.RawMessage(m.value), nil
		}
	case classEither:
		if n, err := strconv.ParseInt(m.value, 10, 64); err == nil && !m.quoted {
			return json.Marshal(n)
		}
	}
	return json.Marshal(m.value)
}

// assign sets a keyword to a value of JSON.
func assign(s *apiextensions.JSONSchemaProps, keyword string, value any) error {
	raw, err := json.Marshal(map[string]any{keyword: value})
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, s)
}

func setKeyword(s *apiextensions.JSONSchemaProps, keyword string, m *marker) error {
	return assign(s, keyword, m.value)
}

func setBound(s *apiextensions.JSONSchemaProps, keyword string, m *marker) error {
	raw, err := scalar(classOf(s), m)
	if err != nil {
		return err
	}
	return assign(s, keyword, raw)
}

func setCount(s *apiextensions.JSONSchemaProps, keyword string, m *marker) error {
	n, err := strconv.ParseInt(m.value, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("want an integer that is not negative, found %s", form.Quoted(m.value))
	}
	return assign(s, keyword, n)
}

// setFlag calls a function if the value is true.
func setFlag(set func(*apiextensions.JSONSchemaProps)) func(*apiextensions.JSONSchemaProps, string, *marker) error {
	return func(s *apiextensions.JSONSchemaProps, _ string, m *marker) error {
		if m.value == "true" && set != nil {
			set(s)
		}
		_, err := scalar(classBoolean, m)
		return err
	}
}

func setUnique(s *apiextensions.JSONSchemaProps) { s.XListType = new("set") }

func setDefault(s *apiextensions.JSONSchemaProps, _ string, m *marker) error {
	c, read := classOf(s), scalar
	if c == classList || c == classMap || c == classObject {
		read = structured
	}
	raw, err := read(c, m)
	if err != nil {
		return err
	}
	s.Default = &apiextensions.JSON{Raw: raw}
	return nil
}

// structured reads a list or an object in JSON.
func structured(c string, m *marker) (json.RawMessage, error) {
	first, example := "{", `{"a": 1}`
	if c == classList {
		first, example = "[", `["a", "b"]`
	}
	if !strings.HasPrefix(m.value, first) {
		return nil, fmt.Errorf("want JSON, as in %s, found %s", example, form.Quoted(m.value))
	}
	var value any
	if err := json.Unmarshal([]byte(m.value), &value); err != nil {
		return nil, fmt.Errorf("want JSON, as in %s: %w", example, err)
	}
	return json.Marshal(value)
}

func setEnum(s *apiextensions.JSONSchemaProps, _ string, m *marker) error {
	var seen []string
	for word := range strings.SplitSeq(m.value, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			return errors.New(`want values with commas between them, as in enum="a,b", found an empty one`)
		}
		if slices.Contains(seen, word) {
			return fmt.Errorf("%s is in the list twice", form.Quoted(word))
		}
		seen = append(seen, word)
		raw, err := scalar(classOf(s), &marker{value: word})
		if err != nil {
			return err
		}
		s.Enum = append(s.Enum, apiextensions.JSON{Raw: raw})
	}
	return nil
}

func setListType(s *apiextensions.JSONSchemaProps, _ string, m *marker) error {
	words := []string{"atomic", "set", "map"}
	if !slices.Contains(words, m.value) {
		return errors.New(form.Unknown("list type", m.value, words))
	}
	s.XListType = &m.value
	return nil
}

func setListMapKey(s *apiextensions.JSONSchemaProps, _ string, m *marker) error {
	items := s.Items.Schema
	for key := range strings.SplitSeq(m.value, ",") {
		key = strings.TrimSpace(key)
		if classOf(items) != classObject {
			return errors.New("listMapKey is for lists of objects")
		}
		if _, has := items.Properties[key]; !has {
			return errors.New(form.Unknown("field", key, propertiesOf(items)))
		}
		s.XListMapKeys = append(s.XListMapKeys, key)
	}
	if s.XListType == nil {
		s.XListType = new("map")
	}
	return nil
}

func setImmutable(s *apiextensions.JSONSchemaProps) {
	s.XValidations = append(s.XValidations, apiextensions.ValidationRule{Rule: "self == oldSelf", Message: "it must not be changed"})
}

func setValidation(s *apiextensions.JSONSchemaProps, _ string, m *marker) error {
	s.XValidations = append(s.XValidations, apiextensions.ValidationRule{Rule: m.value})
	return nil
}

// setMessage sets the message of the rule before it.
func setMessage(s *apiextensions.JSONSchemaProps, _ string, m *marker) error {
	last := len(s.XValidations) - 1
	if last < 0 || s.XValidations[last].Message != "" {
		return errors.New("a message stands behind the validation that it is for")
	}
	s.XValidations[last].Message = m.value
	return nil
}
