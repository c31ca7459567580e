// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeFlags select the API server.
type kubeFlags struct {
	kubeconfig, context string
	// found is the context that was found; empty in a pod.
	found string
}

func (k *kubeFlags) add(set *pflag.FlagSet) {
	set.StringVar(&k.kubeconfig, "kubeconfig", "",
		"read the way to the API server from this `FILE` (default $KUBECONFIG, else the pod's own, else ~/.kube/config)")
	set.StringVar(&k.context, "context", "",
		"use this `context` of the kubeconfig (default its current one)")
}

// access returns the config for the API server: that of the program's own login unless flags override it, otherwise
// as in find.
func (p *program) access(ctx context.Context, k *kubeFlags) (config *rest.Config, namespace string, err error) {
	if p.login == nil || k.kubeconfig != "" || k.context != "" {
		return k.find(p.Env, p.inCluster)
	}
	config, err = loggedIn(ctx, p.login)
	return config, "", err
}

// find returns the config for the API server: from --kubeconfig, else $KUBECONFIG (several files are merged), else
// the pod of this process, else ~/.kube/config. A pod has no contexts, so with --context it is skipped. In a pod,
// responses are not compressed; a kubeconfig can set disable-compression. The namespace is that of the context, by
// default "default", and empty in a pod, which finds its own elsewhere.
func (k *kubeFlags) find(env []string, inCluster func() (*rest.Config, error)) (config *rest.Config, namespace string, err error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: k.kubeconfig}
	listed := filepath.SplitList(lookup(env, clientcmd.RecommendedConfigPathEnvVar))
	switch {
	case k.kubeconfig != "":
	case len(listed) > 0:
		rules.Precedence = listed
	default:
		if k.context == "" {
			config, err := inCluster()
			if err == nil {
				// Between a pod and its API server, compression costs more than it saves: 8 % of the processor time of a backlog.
				config.DisableCompression = true
				return config, "", nil
			}
			if !errors.Is(err, rest.ErrNotInCluster) {
				return nil, "", fmt.Errorf("reading the pod's own access: %w", err)
			}
		}
		rules.Precedence = []string{filepath.Join(lookup(env, "HOME"), ".kube", "config")}
	}
	loaded, err := rules.Load()
	if err != nil {
		return nil, "", fmt.Errorf("reading kubeconfig: %w", err)
	}
	k.found = cmp.Or(k.context, loaded.CurrentContext)
	overrides := &clientcmd.ConfigOverrides{CurrentContext: k.context}
	found := clientcmd.NewNonInteractiveClientConfig(*loaded, k.context, overrides, rules)
	if config, err = found.ClientConfig(); err == nil {
		namespace, _, err = found.Namespace()
	}
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", k.nothing(loaded, rules.Precedence)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading kubeconfig: %w", err)
	}
	return config, namespace, nil
}

// nothing says why the files that were read have no API server.
func (k *kubeFlags) nothing(loaded *clientcmdapi.Config, listed []string) error {
	if len(loaded.Contexts) > 0 {
		names := slices.Sorted(maps.Keys(loaded.Contexts))
		return fmt.Errorf("finding the API server: the kubeconfig has no current context (set --context to one of %s)", strings.Join(names, ", "))
	}
	if k.kubeconfig != "" {
		return fmt.Errorf("finding the API server: kubeconfig %s has no contexts", k.kubeconfig)
	}
	return fmt.Errorf("finding the API server: nothing in %v, and not in a pod (set --kubeconfig)", listed)
}
