// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// runFlags are the flags of run.
type runFlags struct {
	set *pflag.FlagSet

	config     []string
	kube       kubeFlags
	namespaces []string

	health, metrics, pprof, debug           string
	secure                                  bool
	certFile, keyFile                       string
	leaderMode, leaderName, leaderNamespace string
	webhooks                                engine.Webhooks
	keepAdmission                           bool

	grace   time.Duration
	qps     float32
	burst   int
	logging logFlags

	// installCRDs is one of the constants below.
	installCRDs string
	// allowBreaking lets these CRDs break stored objects.
	allowBreaking bool
}

// The values of --install-crds.
const (
	installNone = "false"
	installOwn  = "true"
	installAll  = "takeover"
)

// installs reports whether to install CRDs.
func (f *runFlags) installs() bool { return f.installCRDs == installOwn || f.installCRDs == installAll }

// addConfig adds --config, which several commands share.
func addConfig(set *pflag.FlagSet, config *[]string) {
	set.StringSliceVar(config, "config", nil,
		"read the operator from this `FILE|DIR`; a directory stands for its *.yaml and *.yml; repeatable")
}

func (f *runFlags) add(set *pflag.FlagSet) {
	f.set = set
	addConfig(set, &f.config)
	f.kube.add(set)
	f.addInstall(set)
	f.addNamespaces(set)
	set.StringVar(&f.health, ops.HealthFlag, "",
		"serve /healthz and /readyz on this `address`; 0 turns them off\n(default :8081 in a Pod, and 127.0.0.1:8081 elsewhere)")
	f.addMetrics(set)
	set.StringVar(&f.debug, ops.DebugFlag, ops.DebugAddress,
		"answer operator status and operator why on this `address` of this machine, or unix:FILE\n(if the default is taken, on a free port); others need --"+ops.SecureFlag+"; 0 turns it off")
	set.StringVar(&f.pprof, ops.PprofFlag, "",
		"serve /debug/pprof/ on this `address`, as in 127.0.0.1:6060; off by default")
	f.addLeader(set)
	f.addWebhooks(set)
	f.addAdmission(set)
	set.DurationVar(&f.grace, "grace-period", 0,
		"let handlers go on for this long after a stop was asked for (default 20s)")
	set.Float32Var(&f.qps, "qps", 0,
		"limit the requests per second to the API server to this `number` (default no limit)")
	set.IntVar(&f.burst, "burst", 0,
		"let this `number` of requests exceed --qps for a moment (default twice --qps)")
	f.logging.add(set)
}

func (f *runFlags) addInstall(set *pflag.FlagSet) {
	set.Var(&choice{value: &f.installCRDs, noun: "mode", words: []string{installNone, installOwn, installAll},
		also: map[string]string{"0": installNone, "1": installOwn}}, "install-crds",
		`install the CRDs of the configuration before the operator works, and update those that
have changed: true, false, or takeover, which takes over what others have set in them, as
an operator does that had another name before. Write --install-crds=takeover`)
	set.Lookup("install-crds").NoOptDefVal = installOwn
	set.BoolVar(&f.allowBreaking, allowBreaking, false,
		"let --install-crds change a schema so that stored objects may be invalid or lose fields")
}

// allowBreaking is the flag that accepts a schema by which stored objects may be invalid.
const allowBreaking = "allow-breaking-schema"

// The default addresses of /metrics. Without protection, it is only served to this machine.
const (
	plainMetrics  = "127.0.0.1:8080"
	secureMetrics = ":8443"
)

func (f *runFlags) addMetrics(set *pflag.FlagSet) {
	set.StringVar(&f.metrics, ops.MetricsFlag, "",
		"serve /metrics on this `address` (default "+plainMetrics+", or "+secureMetrics+" with\n--"+ops.SecureFlag+"); 0 turns it off")
	f.addSecure(set)
	set.StringVar(&f.certFile, ops.CertFileFlag, "",
		"with --"+ops.SecureFlag+", take the certificate from this PEM `file`, also when it changes\n(default one that the process signs itself)")
	set.StringVar(&f.keyFile, ops.KeyFileFlag, "", "the PEM `file` with the key of that certificate")
}

// addWebhooks adds the flags of webhooks.
func (f *runFlags) addWebhooks(set *pflag.FlagSet) {
	set.StringVar(&f.webhooks.Address, "webhook-address", "",
		"answer the API server's webhooks on this `address` (default :9443 in a Pod); an address\nof this machine, as 127.0.0.1:9443, is for an API server on this machine")
	set.StringVar(&f.webhooks.URL, "webhook-url", "",
		"the `URL` by which the API server reaches webhooks, as in https://10.0.0.5:9443\n(default by --webhook-service)")
	set.StringVar(&f.webhooks.Service, "webhook-service", "",
		"the `name` of the Service of webhooks in the operator's namespace\n(default the operator's name with -webhook behind it)")
	set.StringVar(&f.webhooks.CertDir, "webhook-cert-dir", "",
		"take the certificate of webhooks from tls.crt, tls.key and ca.crt in this `directory`, also\nwhen they change (default one that the operator makes and renews)")
}

// keepFlag is the flag that decides who keeps the objects of admission.
const keepFlag = "keep-admission"

// addAdmission adds --keep-admission, which the operator's rights also depend on.
func (f *runFlags) addAdmission(set *pflag.FlagSet) {
	set.BoolVar(&f.keepAdmission, keepFlag, true,
		"apply policies and webhook configurations, and put them back when they change; with false,\nthose that operator bundle --admission prints hold")
}

// addSecure adds --metrics-secure, which the operator's rights also depend on.
func (f *runFlags) addSecure(set *pflag.FlagSet) {
	set.BoolVar(&f.secure, ops.SecureFlag, false,
		"serve /metrics by TLS to accounts that may get the nonResourceURL /metrics; the API\nserver is asked. /readyz?verbose is there, too, and names no objects elsewhere")
}

// checkSecure reports files of a certificate that would not be used.
func (f *runFlags) checkSecure() error {
	switch {
	case (f.certFile == "") != (f.keyFile == ""):
		return errors.New("--" + ops.CertFileFlag + " and --" + ops.KeyFileFlag + " need each other")
	case f.certFile != "" && !f.secure:
		return errors.New("--" + ops.CertFileFlag + " needs --" + ops.SecureFlag)
	default:
		return nil
	}
}

// metricsAddress returns the address of /metrics.
func (f *runFlags) metricsAddress() string {
	switch {
	case f.set.Changed(ops.MetricsFlag):
		return f.metrics
	case f.secure:
		return secureMetrics
	default:
		return plainMetrics
	}
}

func (f *runFlags) addNamespaces(set *pflag.FlagSet) {
	set.StringSliceVarP(&f.namespaces, "namespace", "n", nil,
		"work in these `namespaces`, not in those of the configuration: names, globs (team-*)\nand exceptions (!team-old); repeatable")
}

func (f *runFlags) addLeader(set *pflag.FlagSet) {
	set.Var(&choice{
		value: &f.leaderMode,
		noun:  "mode",
		words: []string{string(dsl.LeaderNone), string(dsl.LeaderLease), string(dsl.LeaderLife)},
		also:  map[string]string{"true": string(dsl.LeaderLease), "false": string(dsl.LeaderNone)},
	}, "leader-elect", `of several processes, let work: none (all of them), lease (the holder of a Lease),
life (the first one, until its pod is gone; needs $POD_NAME). Write --leader-elect=life`)
	set.Lookup("leader-elect").NoOptDefVal = string(dsl.LeaderLease)
	set.StringVar(&f.leaderName, "leader-elect-name", "",
		"`name` of the lock (default the operator's name with -leader behind it)")
	set.StringVar(&f.leaderNamespace, "leader-elect-namespace", "",
		"`namespace` of the lock (default $POD_NAMESPACE, or that of the pod)")
}

// check reports invalid values of flags.
func (f *runFlags) check() error {
	if f.grace < 0 || f.qps < 0 || f.burst < 0 {
		return errors.New("--grace-period, --qps and --burst must not be negative")
	}
	if err := f.checkNamespaces(); err != nil {
		return err
	}
	if f.allowBreaking && !f.installs() {
		return errors.New("--" + allowBreaking + " needs --install-crds")
	}
	if err := f.checkSecure(); err != nil {
		return err
	}
	return f.logging.check()
}

// checkNamespaces reports invalid names in --namespace, which would select no namespace.
func (f *runFlags) checkNamespaces() error {
	for _, pattern := range f.namespaces {
		if err := dsl.CheckNamespace(pattern); err != nil {
			return fmt.Errorf("invalid value %q for --namespace: %w", pattern, err)
		}
	}
	return nil
}

// override applies the given flags to the operator's settings.
func (f *runFlags) override(op *dsl.Operator) {
	given := f.set.Changed
	leader := &op.Settings.LeaderElection
	if given("namespace") {
		op.Scope = dsl.Scope{Namespaces: f.namespaces}
	}
	if given("leader-elect") {
		if leader.Mode = dsl.LeaderMode(f.leaderMode); leader.Mode == dsl.LeaderNone {
			*leader = dsl.LeaderElection{Mode: dsl.LeaderNone} // a lock that the configuration describes is not used
		}
	}
	if given("leader-elect-name") {
		leader.Name = f.leaderName
	}
	if given("leader-elect-namespace") {
		leader.Namespace = f.leaderNamespace
	}
	if given(keepFlag) {
		op.Settings.AdmissionByOthers = !f.keepAdmission
	}
	if given("grace-period") {
		op.Settings.GracePeriod = f.grace
	}
	if given("qps") {
		op.Settings.QPS = f.qps
	}
	if given("burst") {
		op.Settings.Burst = f.burst
	}
}

// runArguments refuses arguments. A mode after --leader-elect is read as an argument, so the error explains that.
func runArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	switch dsl.LeaderMode(args[0]) {
	case dsl.LeaderNone, dsl.LeaderLease, dsl.LeaderLife:
		return fmt.Errorf("unknown argument %q (write --leader-elect=%s)", args[0], args[0])
	default:
		return noArguments(c, args)
	}
}
