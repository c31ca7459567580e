// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
)

const (
	config      = "testdata/operator.yaml"
	leavers     = "leavers.v1.chart.handwerk.dev"
	configMaps  = "configmaps.v1"
	deployments = "deployments.v1.apps"
)

// TestReleases installs and uninstalls releases on a real control plane. The test is the kubelet: it runs what the Pods would, by the
// tokens of their accounts.
func TestReleases(t *testing.T) {
	p := startPlane(t)
	t.Run("an operator that runs leaves nothing when it is uninstalled", p.in("shop").leavesNothing)
	t.Run("nothing is uninstalled when the cleanup fails", p.in("doomed").failsToCleanUp)
}

// leavesNothing installs the operator that leaves all that there is to leave, upgrades it, and uninstalls it while it runs.
func (p *plane) leavesNothing(t *testing.T) {
	helm := p.helm(t)
	values := valuesOf(t, config)
	values["crds"] = map[string]any{"manifests": prints(t, "crd", "--config", config)}
	p.restrict(t)
	p.install(t, helm, values)
	before := p.of(deployments).await(t, "handwerk-leaver", "being made", func(o *unstructured.Unstructured) bool {
		return at[int64](object(o), "status", "replicas") == 2 // the Pods are admitted
	})
	program := p.runPod(t, podOf(t, before))
	for _, name := range []string{"stays", "goes"} {
		p.create(t, leavers, fmt.Sprintf("{apiVersion: chart.handwerk.dev/v1, kind: Leaver, metadata: {name: %s, labels: {theirs: x}}, spec: {text: a}}", name))
		p.of(leavers).await(t, name, "being handled", func(o *unstructured.Unstructured) bool {
			return o != nil && len(o.GetFinalizers()) > 0 && len(conditions(o)) > 0
		})
		p.of(configMaps).await(t, name, "of the first version", func(o *unstructured.Unstructured) bool { return at[string](object(o), "data", "version") == "first" })
	}

	values["config"] = map[string]any{"operator.yaml": strings.ReplaceAll(read(t, config), "version: first", "version: second")}
	upgrade := action.NewUpgrade(helm)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout, upgrade.ServerSideApply = p.namespace, kube.HookOnlyStrategy, patience, "auto"
	if _, err := upgrade.RunWithContext(t.Context(), "release", load(t), values); err != nil {
		t.Fatalf("upgrading: %v", err)
	}
	after := p.of(deployments).await(t, "handwerk-leaver", "being rolled", func(o *unstructured.Unstructured) bool { return o != nil && o.GetGeneration() > before.GetGeneration() })
	if checksum(before) == checksum(after) || checksum(before) == "" {
		t.Errorf("the checksums of the configuration are %q and %q", checksum(before), checksum(after))
	}
	if code := program.stop(t); code != 0 {
		t.Errorf("the operator's exit code is %d", code)
	}
	rolled := p.runPod(t, podOf(t, after))
	for _, name := range []string{"stays", "goes"} {
		p.of(configMaps).await(t, name, "of the second version", func(o *unstructured.Unstructured) bool { return at[string](object(o), "data", "version") == "second" })
	}
	if err := p.of(leavers).client.Delete(t.Context(), "goes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	rolled.await(t, "division by zero") // so the finalizer stays

	ended := p.uninstall(helm)
	p.cleansUp(t, rolled)
	if err := <-ended; err != nil {
		t.Fatalf("uninstalling: %v", err)
	}
	for _, one := range []*process{program, rolled} {
		if strings.Contains(one.said(), "forbidden") {
			t.Errorf("the operator lacks rights:\n%s", one.said())
		}
	}
	p.nothingIsLeft(t)
}

// failsToCleanUp uninstalls a release whose Job never runs.
func (p *plane) failsToCleanUp(t *testing.T) {
	helm := p.helm(t)
	p.install(t, helm, parse(t, "{operator: doomed, cleanup: {deadlineSeconds: 1, rbac: {clusterRules: [{apiGroups: [example.com], resources: [foos], verbs: [patch]}]}}}"))
	if err := <-p.uninstall(helm); err == nil || !strings.Contains(err.Error(), "pre-delete") && !strings.Contains(err.Error(), "handwerk-doomed-cleanup") {
		t.Errorf("the error is %v", err)
	}
	p.of(deployments).await(t, "handwerk-doomed", "being there", there)
	p.of("jobs.v1.batch").await(t, "handwerk-doomed-cleanup", "being there for its log", there)
	p.ofAll("clusterroles.v1.rbac.authorization.k8s.io", "").await(t, "handwerk-doomed-cleanup:doomed", "going", gone)
	p.of("serviceaccounts.v1").await(t, "handwerk-doomed-cleanup", "going", gone)
	again := action.NewUninstall(helm)
	again.DisableHooks, again.WaitStrategy, again.Timeout = true, kube.HookOnlyStrategy, patience
	if _, err := again.Run("release"); err != nil {
		t.Errorf("without hooks: %v", err)
	}
	p.of(deployments).await(t, "handwerk-doomed", "going", gone)
}

// restrict makes the namespace, in which the Pod Security Standard restricted decides which Pods there are.
func (p *plane) restrict(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if _, err := p.kubernetes.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// install installs the chart.
func (p *plane) install(t *testing.T, helm *action.Configuration, values map[string]any) {
	t.Helper()
	install := action.NewInstall(helm)
	install.ReleaseName, install.Namespace, install.CreateNamespace, install.WaitStrategy, install.Timeout = "release", p.namespace, true, kube.HookOnlyStrategy, patience
	if _, err := install.RunWithContext(t.Context(), load(t), values); err != nil {
		t.Fatalf("installing: %v", err)
	}
}

// uninstall begins to uninstall the release.
func (p *plane) uninstall(helm *action.Configuration) (ended <-chan error) {
	uninstall := action.NewUninstall(helm)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, patience
	out := make(chan error, 1)
	go func() {
		_, err := uninstall.Run("release")
		out <- err
	}()
	return out
}

// cleansUp runs the Job of the hook, and ends the operator when its Deployment has no Pods any more.
func (p *plane) cleansUp(t *testing.T, running *process) {
	t.Helper()
	jobs := p.of("jobs.v1.batch")
	job := jobs.await(t, "handwerk-leaver-cleanup", "having a Pod", func(o *unstructured.Unstructured) bool { return at[int64](object(o), "status", "active") == 1 })
	cleanup := p.runPod(t, podOf(t, job))
	p.of(deployments).await(t, "handwerk-leaver", "being scaled to zero", func(o *unstructured.Unstructured) bool {
		return o == nil || at[int64](object(o), "spec", "replicas") == 0
	})
	if code := running.stop(t); code != 0 {
		t.Errorf("the operator's exit code is %d", code)
	}
	if code := cleanup.wait(t); code != 0 {
		t.Errorf("the exit code of the cleanup is %d", code)
	}
	p.succeed(t, job)
	jobs.await(t, "handwerk-leaver-cleanup", "going", gone)
}

// succeed says of the Job's Pod what a kubelet says when its container has ended well. The rest is the Job controller's.
func (p *plane) succeed(t *testing.T, job *unstructured.Unstructured) {
	t.Helper()
	pods, err := p.kubernetes.CoreV1().Pods(p.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job.GetName()})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("the Job has %d Pods (%v)", len(pods.Items), err)
	}
	_, err = p.kubernetes.CoreV1().Pods(p.namespace).Patch(t.Context(), pods.Items[0].Name, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatalf("ending the Pod: %v", err)
	}
}

// nothingIsLeft holds that neither the operator nor its release has left anything but the CRD and what people made.
func (p *plane) nothingIsLeft(t *testing.T) {
	t.Helper()
	p.of(leavers).await(t, "goes", "going", gone)
	stays := p.of(leavers).await(t, "stays", "being there", there)
	if left := fmt.Sprint(stays.GetFinalizers(), stays.GetAnnotations(), conditions(stays), stays.GetLabels()); left != "[] map[] [] map[theirs:x]" {
		t.Errorf("the object bears %s", left)
	}
	child := p.of(configMaps).await(t, "stays", "being there", there)
	if len(child.GetAnnotations())+len(child.GetLabels())+len(child.GetFinalizers()) > 0 || len(child.GetOwnerReferences()) != 1 {
		t.Errorf("the child is %v", child)
	}
	for _, one := range []string{
		"serviceaccounts.v1", configMaps, "secrets.v1", "services.v1", deployments, "leases.v1.coordination.k8s.io", "poddisruptionbudgets.v1.policy",
		"networkpolicies.v1.networking.k8s.io", "roles.v1.rbac.authorization.k8s.io", "rolebindings.v1.rbac.authorization.k8s.io",
		"clusterroles.v1.rbac.authorization.k8s.io", "clusterrolebindings.v1.rbac.authorization.k8s.io",
	} {
		space := p.namespace
		if strings.HasPrefix(one, "cluster") {
			space = metav1.NamespaceAll
		}
		list, err := p.ofAll(one, space).client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if strings.Contains(o.GetName(), "leaver") || strings.Contains(o.GetName(), "release") {
				t.Errorf("%s %s is left", one, o.GetName())
			}
		}
	}
	if err := p.kubernetes.CoreV1().Namespaces().Delete(t.Context(), p.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.ofAll("namespaces.v1", "").await(t, p.namespace, "going", gone)
}

// helm is Helm's access to the control plane.
func (p *plane) helm(t *testing.T) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	space := p.namespace
	flags.KubeConfig, flags.Namespace = &p.kubeconfig, &space
	out := action.NewConfiguration()
	if err := out.Init(flags, p.namespace, "secret"); err != nil {
		t.Fatalf("connecting Helm: %v", err)
	}
	return out
}

// create makes an object.
func (p *plane) create(t *testing.T, name, text string) {
	t.Helper()
	if _, err := p.of(name).client.Create(t.Context(), &unstructured.Unstructured{Object: parse(t, text)}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// runPod runs the program of a Pod as the kubelet would: with its arguments and variables, its ConfigMaps in place, and the token of
// its account.
func (p *plane) runPod(t *testing.T, spec corev1.PodSpec) *process {
	t.Helper()
	dir, container := t.TempDir(), spec.Containers[0]
	args := slices.Clone(container.Args)
	for _, volume := range spec.Volumes {
		data, err := p.kubernetes.CoreV1().ConfigMaps(p.namespace).Get(t.Context(), volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume.Name })
		for name, text := range data.Data {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for j := range args {
			args[j] = strings.ReplaceAll(args[j], container.VolumeMounts[i].MountPath, dir)
		}
	}
	c := exec.Command(operator, args...)
	c.Env = []string{"KUBECONFIG=" + p.access(t, spec.ServiceAccountName), "HANDWERK_HEALTH_PROBE_BIND_ADDRESS=127.0.0.1:0", "HANDWERK_METRICS_BIND_ADDRESS=127.0.0.1:0"}
	for _, variable := range container.Env {
		if from := variable.ValueFrom; from != nil {
			variable.Value = map[string]string{"metadata.name": "pod-0", "metadata.namespace": p.namespace}[from.FieldRef.FieldPath]
		}
		c.Env = append(c.Env, variable.Name+"="+variable.Value)
	}
	return startProcess(t, c)
}

// access writes a kubeconfig with a token of an account, and returns its path.
func (p *plane) access(t *testing.T, account string) string {
	t.Helper()
	token, err := p.kubernetes.CoreV1().ServiceAccounts(p.namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("asking for a token of %s: %v", account, err)
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["plane"] = &clientcmdapi.Cluster{Server: p.config.Host, CertificateAuthority: p.config.CAFile, CertificateAuthorityData: p.config.CAData}
	file.AuthInfos["pod"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	file.Contexts["pod"] = &clientcmdapi.Context{Cluster: "plane", AuthInfo: "pod"}
	file.CurrentContext = "pod"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// podOf is the Pod that a Deployment or a Job makes.
func podOf(t *testing.T, o *unstructured.Unstructured) (spec corev1.PodSpec) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(at[map[string]any](o.Object, "spec", "template", "spec"), &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func there(o *unstructured.Unstructured) bool { return o != nil }

// object is what an object has, nothing where there is none.
func object(o *unstructured.Unstructured) map[string]any {
	if o == nil {
		return nil
	}
	return o.Object
}

func conditions(o *unstructured.Unstructured) []any {
	return at[[]any](o.Object, "status", "conditions")
}

func checksum(o *unstructured.Unstructured) string {
	return at[string](o.Object, "spec", "template", "metadata", "annotations", "checksum/config")
}
