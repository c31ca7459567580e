// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WithheldError is an error of the API server whose text is hidden because it may quote a Secret. It unwraps to the
// original error.
type WithheldError struct {
	text   string
	answer error
}

// Error returns the reason of the error and the fields that it names.
func (e *WithheldError) Error() string { return e.text }

// Unwrap returns the original error.
func (e *WithheldError) Unwrap() error { return e.answer }

// Withhold hides the text of an error of the API server: it returns a [WithheldError], which ends with the advice. It
// returns any other error unchanged. The API server quotes values that it refuses, and a policy may quote any value.
func Withhold(err error, advice string) error {
	answer := apierrors.APIStatus(nil)
	if _, done := errors.AsType[*WithheldError](err); done || !errors.As(err, &answer) {
		return err
	}
	return &WithheldError{withheld(answer.Status(), advice), err}
}

// unquoted says why the text of an error is missing.
const unquoted = " (its words are not shown, for they may quote a Secret)"

// harmless match the parts of errors that contain no values of objects: a missing right, and the name of a policy that
// refuses. Patterns with names in them match only at the beginning of an error. Later in the text, the words may be a
// quotation from an object, and its author can put them around a value of a Secret.
var harmless = []*regexp.Regexp{
	regexp.MustCompile(`^[a-z0-9./-]+(?: "[^"\\]*")? is forbidden: (User "[^"]+" cannot [a-z]+ resource "[a-z0-9./-]+" in API group "[a-z0-9.-]*"(?: in the namespace "[a-z0-9-]+"| at the cluster scope)?)`),
	regexp.MustCompile(`^[a-z0-9./-]+(?: "[^"\\]*")? is forbidden: (ValidatingAdmissionPolicy '[a-z0-9.-]+' with binding '[a-z0-9.-]+' denied request)`),
	regexp.MustCompile(`^(policy '[a-z0-9.-]+' with binding '[a-z0-9.-]+' denied request)`),
	regexp.MustCompile(`^(admission webhook "[a-z0-9.-]+" denied the request)`),
	regexp.MustCompile(`^Internal error occurred: (failed calling webhook "[a-z0-9.-]+")`),
	regexp.MustCompile(`(denied the request|denied request|violates PodSecurity|exceeded quota)`),
}

// withheld describes an error of the API server without values of objects.
func withheld(s metav1.Status, advice string) string {
	for _, part := range harmless {
		if found := part.FindStringSubmatch(s.Message); found != nil {
			return found[1] + cmp.Or(advice, unquoted)
		}
	}
	kind, fields := "it", []string(nil)
	if s.Details != nil {
		kind, fields = cmp.Or(s.Details.Kind, kind), places(s.Details)
	}
	if s.Reason == metav1.StatusReasonInvalid {
		text := "the API server refuses " + kind + " as invalid"
		if len(fields) > 0 {
			text += ": " + strings.Join(fields, ", ")
		}
		return text + unquoted
	}
	return fmt.Sprintf("%s: the API server answers %s (%d)%s", causeOf(s), cmp.Or(s.Reason, "with an error"), s.Code, unquoted)
}

// misread matches an error about a value of a wrong type, with the first field of its path.
var misread = regexp.MustCompile(`^failed to create typed patch object \([^)]*\): (?:errors:\s+)?\.(metadata|spec|data|stringData|binaryData|type|immutable)\b`)

// causeOf returns the meaning of a status, without words of its message. Many have only a code.
func causeOf(s metav1.Status) string {
	if found := misread.FindStringSubmatch(s.Message); found != nil {
		return "a value in " + found[1] + " has a wrong type"
	}
	switch of := s.Details; {
	case strings.HasPrefix(s.Message, "failed to create typed patch object"):
		return "a field has a value of a wrong type, or is not in the schema"
	case s.Reason == metav1.StatusReasonNotFound && of != nil && of.Kind == "namespaces":
		return "its namespace does not exist"
	case of != nil && slices.ContainsFunc(of.Causes, func(c metav1.StatusCause) bool { return c.Type == "NamespaceTerminating" }):
		return "its namespace is being deleted"
	case strings.Contains(s.Message, "request is too large"):
		return "it is too large to be stored"
	}
	return cmp.Or(causes[s.Code], "it does not say why")
}

// causes are what status codes mean.
var causes = map[int32]string{
	400: "it cannot be read as an object of its kind, for a value has a wrong type or form",
	401: "the operator's credentials are not accepted",
	403: "an admission rule or a missing right forbids it",
	404: "it, or what it refers to, does not exist",
	405: "its resource does not support this request",
	406: "the API server does not serve the form of answer that is asked for",
	409: "it has changed meanwhile, or something refuses it as a conflict",
	410: "the version that is asked for is not kept any more",
	413: "it is too large",
	415: "the API server does not take the form of the request",
	429: "the API server, or an admission rule, asks to try later",
	500: "the API server failed, or a value has a wrong type",
	503: "the API server, or a server behind it, is not available",
	504: "the API server did not answer in time",
}

// typedKeys are the keys that types of Secrets require.
var typedKeys = []string{
	"data[tls.crt]", "data[tls.key]", "data[.dockercfg]", "data[.dockerconfigjson]", "data[ssh-privatekey]", "data[username]", "data[password]",
	"data[%s].username", "data[%s].password",
}

// mostPlaces is the greatest number of fields that an error names.
const mostPlaces = 5

// places returns the fields that a status names.
func places(of *metav1.StatusDetails) (out []string) {
	for _, cause := range of.Causes {
		place := fieldPlace(of.Group, cause.Field)
		if slices.Contains(typedKeys, cause.Field) {
			place = cause.Field
		}
		if place != "" {
			out = append(out, place)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), mostPlaces)]
}

// fieldPlace shortens the path of a field in an error of the API server before the first key of a map, because a key
// may be a value of a Secret. In objects of CRDs, keys look like fields, so only the first field is left.
func fieldPlace(group, field string) string {
	field = strings.TrimPrefix(field, ".")
	end := 0
	for steps := 0; end < len(field); {
		step := fieldStep.FindString(field[end:])
		if step == "" || steps == 1 && !BuiltIn(group) {
			return field[:end] + "…"
		}
		if end += len(step); step[0] != '[' {
			steps++
		}
	}
	return field
}

// fieldStep matches a name, with the dot before it, or an index of a list.
var fieldStep = regexp.MustCompile(`^(\.?[A-Za-z_$][A-Za-z0-9_$-]*|\[[0-9]+\])`)
