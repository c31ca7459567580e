// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/handlers"
)

// TestUpdateChangesWhatFails holds that expectations that fail become what was found, that the rest of the file stays as it
// is, and that the cases pass then.
func TestUpdateChangesWhatFails(t *testing.T) {
	shop, err := filepath.Abs("testdata/shop")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/update/before.yaml")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "a_test.yaml")
	order, err := os.ReadFile("testdata/shop/order.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(name), "order.yaml"), order, 0o600); err != nil {
		t.Fatal(err)
	}
	text := func() string {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(data), shop, "../shop")
	}
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(string(data), "../shop", shop)), 0o600); err != nil {
		t.Fatal(err)
	}
	failures := func() (out []Failure) {
		suite := NewSuite(handlers.Standard())
		f, err := Read(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Cases {
			out = append(out, suite.Test(t, c)...)
		}
		return out
	}
	changes, left, err := Update(name, failures())
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 21 || changes[0].String() != name+`:11: cases[0].expect.objects["configmaps/one-bill"].data.title was Coffee, is now Tea` {
		t.Errorf("there are %d changes, at first %v", len(changes), changes)
	}
	const file = "testdata/update/after.yaml"
	if *update {
		if err := os.WriteFile(file, []byte(text()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text()); diff != "" {
		t.Errorf("the file (-want +got):\n%s", diff)
	}
	var fixed []string
	for _, f := range left {
		fixed = append(fixed, f.Message)
	}
	if diff := cmp.Diff([]string{`this is false: orders.size() == 2`, "configmaps/one-bill is not as expected (- expected, + found)", "orders/one is not as expected (- expected, + found)"}, fixed); diff != "" {
		t.Errorf("what cannot be updated (-want +got):\n%s", diff)
	}
	again := failures()
	for _, f := range again {
		if !slices.Contains(fixed, f.Message) {
			t.Errorf("after the update:\n%s", f)
		}
	}
	if _, left, err := Update(name, again); err != nil || len(left) != len(fixed) || text() != string(want) {
		t.Errorf("an update of what is up to date leaves %d failures (%v), or changes the file", len(left), err)
	}
}
