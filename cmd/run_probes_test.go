// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestProbesAreOpenInAPodAlone holds where /healthz is without a flag.
func TestProbesAreOpenInAPodAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		args, env []string
		want      string
	}{
		"on a laptop":              {want: "127.0.0.1:8081"},
		"in a Pod":                 {env: []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}, want: ":8081"},
		"with an address":          {args: []string{"--health-probe-bind-address=:9"}, want: ":9"},
		"turned off on a laptop":   {args: []string{"--health-probe-bind-address="}, want: ""},
		"turned off even in a Pod": {args: []string{"--health-probe-bind-address=0"}, env: []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}, want: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			f, set := &runFlags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
			f.add(set)
			if err := set.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			b := newBench(t)
			b.Env = tt.env
			if got := b.healthAddress(f); got != tt.want {
				t.Errorf("the address is %q, want %q", got, tt.want)
			}
		})
	}
}
