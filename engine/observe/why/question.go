// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"errors"
	"net/url"
)

// Asked is the name of this question, for servers that answer several.
const Asked = "why"

// Question asks about one object. Resource is as in kubectl: a kind, the plural, the singular or a short name, with or without version
// and group.
type Question struct {
	Resource, Namespace, Name string
	// History asks for the recorded reconciles, too.
	History bool
}

// Values returns the question as the values of a URL.
func (q Question) Values() url.Values {
	out := url.Values{"resource": {q.Resource}, "name": {q.Name}}
	if q.Namespace != "" {
		out.Set("namespace", q.Namespace)
	}
	if q.History {
		out.Set("history", "true")
	}
	return out
}

// ParseQuestion reads the values that Values has written.
func ParseQuestion(values url.Values) (Question, error) {
	q := Question{
		Resource: values.Get("resource"), Namespace: values.Get("namespace"), Name: values.Get("name"), History: values.Get("history") == "true",
	}
	if q.Resource == "" || q.Name == "" {
		return q, errors.New("resource and name are required")
	}
	return q, nil
}
