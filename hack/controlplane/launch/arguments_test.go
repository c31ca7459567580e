// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"slices"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	extra := map[string][]string{APIServer: {"--v=3"}}
	tests := map[string]struct {
		component string
		settings  Settings
		want      []string
		without   []string
	}{
		"the API server gets its port": {
			component: APIServer, want: []string{"--secure-port=1234", "--bind-address=127.0.0.1"},
		},
		"pods need their service account where somebody makes it": {
			component: APIServer, want: []string{"--disable-admission-plugins=TaintNodesByCondition"},
		},
		"pods need no service account where no controller makes it": {
			component: APIServer, settings: Settings{Without: []string{ControllerManager}},
			want: []string{"--disable-admission-plugins=TaintNodesByCondition,ServiceAccount"},
		},
		"no audit unless asked for": {component: APIServer, without: []string{"--audit-"}},
		"audit is not batched": {
			component: APIServer, settings: Settings{Audit: true},
			want: []string{"--audit-policy-file=audit-policy.yaml", "--audit-log-path=audit.log", "--audit-log-mode=blocking"},
		},
		"a policy of one's own": {
			component: APIServer, settings: Settings{Audit: true, AuditPolicy: "/p"}, want: []string{"--audit-policy-file=/p"},
		},
		"further arguments reach their component": {
			component: APIServer, settings: Settings{Extra: extra}, want: []string{"--v=3"},
		},
		"further arguments reach no other": {
			component: Etcd, settings: Settings{Extra: extra}, without: []string{"--v"},
		},
		"gates reach the controller manager": {
			component: ControllerManager, settings: Settings{FeatureGates: "A=true"}, want: []string{"--feature-gates=A=true"},
		},
		"gates reach the scheduler": {
			component: Scheduler, settings: Settings{FeatureGates: "A=true"}, want: []string{"--feature-gates=A=true"},
		},
		"etcd listens on no port": {component: Etcd, without: []string{"--listen-client-urls=http"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := arguments(test.component, test.settings, 1234)
			for _, want := range test.want {
				if !slices.Contains(got, want) {
					t.Errorf("%s is missing in %q", want, got)
				}
			}
			for _, prefix := range test.without {
				if slices.ContainsFunc(got, func(arg string) bool { return strings.HasPrefix(arg, prefix) }) {
					t.Errorf("%s should not be in %q", prefix, got)
				}
			}
		})
	}
}
