// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/sandbox"
)

func TestInAClusterAllIsTheSameAndStays(t *testing.T) {
	kubeconfig := sandbox.New(t, sandbox.Options{NoWorkloads: true}).Kubeconfig()
	s := newStage(t)
	var err error
	if s.settings.Cluster, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		t.Fatal(err)
	}
	s.begin()
	for _, line := range []string{
		`^operator sites runs in the cluster at https://127.0.0.1:\d+, namespace default, until Ctrl-C. What it writes there stays.$`,
		`^crds/sites.example.com +sites +created$`,
		`^sites/home +play +created$`,
		`^deployments/home +web +created$`,
	} {
		s.awaits(line)
	}
	s.write("operator.yaml", strings.Replace(sites, "image: nginx", "image: httpd", 1))
	s.awaits(`operator.yaml changed: the operator starts again$`)
	s.awaits(`^deployments/home +web +spec.template.spec.containers\[0\].image nginx → httpd, annotation `)
	s.end()
	s.get(s.client(kubeconfig), deploymentGVR, "home")
	if text := s.out.String(); strings.Contains(text, "KUBECONFIG") || strings.Contains(text, "workloads") {
		t.Errorf("an API server was started:\n%s", text)
	}
}
