// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import "strconv"

// arguments returns what the component is started with. Paths are relative to the folder.
func arguments(name string, s Settings, port int) []string {
	var args []string
	switch name {
	case Etcd:
		args = etcdArguments()
	case APIServer:
		args = apiServerArguments(s, port)
	case ControllerManager:
		args = controllerManagerArguments(s)
	case Scheduler:
		args = schedulerArguments(s)
	case Kwok:
		args = kwokArguments()
	}
	return append(args, s.Extra[name]...)
}

const (
	etcdURL = "unix://etcd.sock"
	peerURL = "unix://etcd-peer.sock"
)

// etcdArguments trade durability in a power cut for speed; a crash of the process loses nothing.
func etcdArguments() []string {
	return []string{
		"--name=default",
		"--data-dir=etcd",
		"--listen-client-urls=" + etcdURL,
		"--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + peerURL,
		"--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=default=" + peerURL,
		"--unsafe-no-fsync",
		// The only member waits for this long before it elects itself.
		"--heartbeat-interval=40",
		"--election-timeout=200",
		"--quota-backend-bytes=8589934592",
	}
}

func apiServerArguments(s Settings, port int) []string {
	args := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + serverCert,
		"--tls-private-key-file=" + serverKey,
		"--client-ca-file=" + caCert,
		"--token-auth-file=" + tokensFile,
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + accountKey,
		"--service-account-signing-key-file=" + accountKey,
		"--requestheader-client-ca-file=" + caCert,
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + proxyCert,
		"--proxy-client-key-file=" + proxyKey,
		"--enable-aggregator-routing=true",
		// The endpoints of the Service "kubernetes" may not be a loopback address.
		"--endpoint-reconciler-type=none",
		"--disable-admission-plugins=" + disabledAdmission(s),
	}
	if s.Audit {
		args = append(args, auditArguments(s)...)
	}
	return append(args, featureGates(s)...)
}

// disabledAdmission names the plugins that wait for controllers which are not there. New nodes
// would stay tainted as not ready, and without service accounts no pod would be let in.
func disabledAdmission(s Settings) string {
	if s.Has(ControllerManager) {
		return "TaintNodesByCondition"
	}
	return "TaintNodesByCondition,ServiceAccount"
}

func auditArguments(s Settings) []string {
	policy := s.AuditPolicy
	if policy == "" {
		policy = auditPolicyFile
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + auditLogFile,
		"--audit-log-format=json",
		// The request itself writes its line, no batch that comes later.
		"--audit-log-mode=blocking",
		// No rotation: a test that counts lines should find all of them in one file.
		"--audit-log-maxsize=1048576",
	}
}

func controllerManagerArguments(s Settings) []string {
	args := append(clientArguments(ControllerManager),
		"--service-account-private-key-file="+accountKey,
		"--root-ca-file="+caCert,
		"--cluster-signing-cert-file="+caCert,
		"--cluster-signing-key-file="+caKey,
		// kwok's nodes send no heartbeats, which keeps an idle cluster free of writes.
		"--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
	return append(args, featureGates(s)...)
}

func schedulerArguments(s Settings) []string {
	args := append(clientArguments(Scheduler), "--kube-api-qps=500", "--kube-api-burst=1000")
	return append(args, featureGates(s)...)
}

// clientArguments make a component a mere client of the API server that serves nothing itself.
func clientArguments(name string) []string {
	kubeconfig := name + ".kubeconfig"
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
	}
}

func kwokArguments() []string {
	return []string{
		"--kubeconfig=" + Kwok + ".kubeconfig",
		"--manage-all-nodes=true",
		// Without leases, as after a restart kwok would wait for its former self's to run out.
		"--node-lease-duration-seconds=0",
		"--cidr=10.244.0.1/16",
		"--node-ip=192.0.2.1",
		"--v=WARN", // it would log every change of a pod
	}
}

func featureGates(s Settings) []string {
	if s.FeatureGates == "" {
		return nil
	}
	return []string{"--feature-gates=" + s.FeatureGates}
}
