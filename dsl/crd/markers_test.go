// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/crd"
)

// TestPeopleReadAboutEveryMarker compares the texts that list markers with the table.
func TestPeopleReadAboutEveryMarker(t *testing.T) {
	var want []string
	for _, m := range crd.Markers() {
		want = append(want, m.Name)
	}
	field, _ := reflect.TypeFor[crd.Schema]().FieldByName("Spec")
	_, listed, _ := strings.Cut(field.Tag.Get("doc"), " Markers: ")
	listed = strings.NewReplacer(" (a CEL expression) and its ", ", ", ".", "").Replace(listed)
	mustEqual(t, "markers of resources.schema.spec", want, strings.Split(listed, ", "))

	page, err := os.ReadFile("../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n| markers | for |\n")
	rest, _, _ = strings.Cut(rest, "\n\n")
	var got []string
	for _, m := range regexp.MustCompile("`(\\w+)(=\"[^`]*)?`").FindAllStringSubmatch(rest, -1) {
		if m[1] != "spec" {
			got = append(got, m[1])
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	mustEqual(t, "markers of docs/language.md", want, got)
}
