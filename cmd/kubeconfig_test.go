// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestKubeconfig(t *testing.T) {
	flag := writeFile(t, "flag", kubeconfigOf("https://flag"))
	first := writeFile(t, "first", kubeconfigOf("https://first"))
	empty := writeFile(t, "empty", "apiVersion: v1\nkind: Config\n")
	undecided := writeFile(t, "undecided", strings.Replace(kubeconfigOf("https://undecided"), "current-context: first\n", "", 1))
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".kube", "config"), []byte(kubeconfigOf("https://home")), 0o600); err != nil {
		t.Fatal(err)
	}
	pod := func() (*rest.Config, error) { return &rest.Config{Host: "https://pod"}, nil }
	outside := func() (*rest.Config, error) { return nil, rest.ErrNotInCluster }
	broken := func() (*rest.Config, error) { return nil, errors.New("no token") }
	tests := map[string]struct {
		flags     kubeFlags
		env       []string
		inCluster func() (*rest.Config, error)
		want      string
		err       string
	}{
		"the flag comes first":                 {kubeFlags{kubeconfig: flag}, []string{"KUBECONFIG=" + first, "HOME=" + home}, pod, "https://flag", ""},
		"then KUBECONFIG":                      {kubeFlags{}, []string{"KUBECONFIG=" + first, "HOME=" + home}, pod, "https://first", ""},
		"of several files the first wins":      {kubeFlags{}, []string{"KUBECONFIG=" + first + string(filepath.ListSeparator) + flag}, pod, "https://first", ""},
		"then the pod":                         {kubeFlags{}, []string{"HOME=" + home}, pod, "https://pod", ""},
		"then the home directory":              {kubeFlags{}, []string{"HOME=" + home}, outside, "https://home", ""},
		"a context is not looked for in a pod": {kubeFlags{context: "second"}, []string{"HOME=" + home}, pod, "https://home/second", ""},
		"a context of a file":                  {kubeFlags{kubeconfig: flag, context: "second"}, nil, outside, "https://flag/second", ""},
		"a pod that lacks its access says so":  {kubeFlags{}, []string{"HOME=" + home}, broken, "", "reading the pod's own access: no token"},
		"a file that is not there is named":    {kubeFlags{kubeconfig: "/nowhere/kubeconfig"}, nil, pod, "", "reading kubeconfig: stat /nowhere/kubeconfig: no such file or directory"},
		"a file without a context is named": {
			kubeFlags{kubeconfig: empty}, nil, outside, "", "finding the API server: kubeconfig " + empty + " has no contexts",
		},
		"one without a current context says which there are": {
			kubeFlags{kubeconfig: undecided}, nil, outside, "",
			"finding the API server: the kubeconfig has no current context (set --context to one of first, second)",
		},
		"nothing anywhere says where it looked": {kubeFlags{}, []string{"KUBECONFIG=/nowhere/kubeconfig"}, outside, "", "finding the API server: nothing in [/nowhere/kubeconfig], and not in a pod (set --kubeconfig)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config, _, err := test.flags.find(test.env, test.inCluster)
			if got := fmt.Sprint(err); test.err != "" && got != test.err || test.err == "" && err != nil {
				t.Fatalf("error: got %q, want %q", got, test.err)
			}
			if err == nil && config.Host != test.want {
				t.Errorf("got %s, want %s", config.Host, test.want)
			}
			if inPod := test.want == "https://pod"; err == nil && config.DisableCompression != inPod {
				t.Errorf("answers are not to be compressed: %v, want %v", config.DisableCompression, inPod)
			}
		})
	}
}

// kubeconfigOf has two contexts; the first is the current one.
func kubeconfigOf(server string) string {
	return strings.ReplaceAll(`apiVersion: v1
kind: Config
current-context: first
clusters:
- {name: first, cluster: {server: "SERVER"}}
- {name: second, cluster: {server: "SERVER/second"}}
contexts:
- {name: first, context: {cluster: first, user: me}}
- {name: second, context: {cluster: second, user: me}}
users:
- {name: me, user: {token: secret}}
`, "SERVER", server)
}
