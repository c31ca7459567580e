// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestPlayAsksBeforeItWorksInACluster(t *testing.T) {
	const kubeconfig = `{apiVersion: v1, kind: Config, current-context: kind-dev, clusters: [{name: a, cluster: {server: "https://dev.example:6443"}}],
		contexts: [{name: kind-dev, context: {cluster: a, namespace: team}}, {name: other, context: {cluster: a}}]}`
	const stays = "it installs CRDs, and its own objects and examples without a namespace come into namespace "
	tests := map[string]struct {
		args   string
		answer string
		person bool
		mode   dsl.LeaderMode
		out    []string
		err    string
	}{
		"a person says no": {args: "--cluster -n dev", answer: "n\n", person: true,
			out: []string{"operator bar is going to work in the cluster at https://dev.example:6443 (context kind-dev), in namespaces dev\n", stays + "dev; all that stays\n",
				"if it runs there already, both do the same work", "go on? [y/N] "},
			err: "error: nothing was changed\n"},
		"nobody can be asked": {args: "--cluster --context other",
			out: []string{"(context other), in all namespaces\n", stays + "default;"}, err: "error: without a terminal, nothing is changed unless --yes is given\n"},
		"it elects a leader by lease": {args: "--cluster", mode: dsl.LeaderLease, out: []string{"all that stays\n"}, err: "error: without a terminal"},
		"a cluster keeps its state":   {args: "--cluster --keep x", err: "error: --keep is for an API server in the process"},
		"a context needs a cluster":   {args: "--context other", err: "error: --kubeconfig and --context need --cluster\n"},
		"a namespace has to be one":   {args: "-n Team_A", err: `error: invalid value "Team_A" for --namespace`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
				t.Fatal(err)
			}
			b := newBench(t, "KUBECONFIG="+file)
			b.extra = []func(*dsl.Operator){addCensus(test.mode)}
			b.In, b.asks = strings.NewReader(test.answer), func(io.Reader) bool { return test.person }
			if code := b.execute(t.Context(), append([]string{"play"}, strings.Fields(test.args)...)); code == exitOK {
				t.Error("it has played")
			}
			for _, want := range test.out {
				if !strings.Contains(b.out.String(), want) {
					t.Errorf("the question is %q, want %q in it", b.out.String(), want)
				}
			}
			if !strings.HasPrefix(b.err.String(), test.err) {
				t.Errorf("the error is %q, want %q", b.err.String(), test.err)
			}
			if both := strings.Contains(b.out.String(), "both do the same work"); both && test.mode == dsl.LeaderLease {
				t.Errorf("it warns of two at work, who elect a leader: %s", b.out.String())
			}
		})
	}
}
