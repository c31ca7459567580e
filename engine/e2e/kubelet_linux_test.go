// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// held is the finalizer that keeps a Pod until its process has ended. A Pod without one goes at once: kwok plays its kubelet.
const held = "e2e.handwerk.dev/kubelet"

// kubelet runs a process of the operator for each Pod of a namespace, as a node does: from the image's files, with the Pod's
// arguments, environment, volumes and service account. It takes its own addresses for probes and metrics, as all share a network.
type kubelet struct {
	t      *testing.T
	ns     string
	image  string
	config imageConfig
	pods   watch.Interface
	runs   map[types.UID]*cluster.Operator
	// ended are the processes that were stopped, in order.
	ended []*cluster.Operator
}

// newKubelet runs the Pods of a namespace, which may come later, from the image.
func newKubelet(t *testing.T, ns, image string, config imageConfig) *kubelet {
	t.Helper()
	pods, err := plane.Kubernetes().CoreV1().Pods(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pods.Stop)
	return &kubelet{t: t, ns: ns, image: image, config: config, pods: pods, runs: map[types.UID]*cluster.Operator{}}
}

// sees starts the process of a Pod that a node has, and stops that of a Pod that is to go.
func (k *kubelet) sees(event watch.Event) {
	k.t.Helper()
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		k.t.Fatalf("watching Pods: %v", event.Object)
	}
	run, runs := k.runs[pod.UID]
	switch {
	case event.Type == watch.Deleted:
	case pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" && !runs:
		if k.hold(pod, held) {
			k.runs[pod.UID] = k.start(pod)
		}
	case pod.DeletionTimestamp != nil && runs && !slices.Contains(k.ended, run):
		if exit := run.Stop(k.t); exit.Code != 0 {
			k.t.Errorf("Pod %s: exit code %d", pod.Name, exit.Code)
		}
		k.ended = append(k.ended, run)
		k.hold(pod)
	}
}

// hold sets the finalizers of a Pod, and reports whether the Pod is still there.
func (k *kubelet) hold(pod *corev1.Pod, finalizers ...string) bool {
	k.t.Helper()
	patch := `{"metadata":{"finalizers":null}}`
	if len(finalizers) > 0 {
		patch = `{"metadata":{"finalizers":["` + strings.Join(finalizers, `","`) + `"]}}`
	}
	_, err := plane.Kubernetes().CoreV1().Pods(k.ns).Patch(k.t.Context(), pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		k.t.Fatalf("holding Pod %s: %v", pod.Name, err)
	}
	return err == nil
}

// start starts the process of a Pod, and returns when its probe would let it serve.
func (k *kubelet) start(pod *corev1.Pod) *cluster.Operator {
	k.t.Helper()
	container := pod.Spec.Containers[0]
	if s := container.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		k.t.Errorf("the root file system of Pod %s is not read-only", pod.Name)
	}
	root := k.t.TempDir()
	k.fill(root)
	for _, mount := range container.VolumeMounts {
		k.mount(pod, filepath.Join(root, mount.MountPath), mount.Name)
	}
	command, args := container.Command, container.Args
	if len(command) == 0 {
		command = k.config.Entrypoint
		if len(args) == 0 {
			args = k.config.Cmd
		}
	}
	run := plane.Operator(k.t, cluster.Launch{Program: "env", Args: slices.Concat([]string{"-i"}, k.environment(pod, container),
		[]string{"unshare", "--mount", "--", "sh", "-c", asContainer, "sh", root}, command, args)})
	awaitReadyz(k.t, run, "readyz check passed")
	mayNotWrite(k.t, run)
	return run
}

// fill fills a root folder with the image's files.
func (k *kubelet) fill(root string) {
	k.t.Helper()
	err := filepath.WalkDir(k.image, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.Join(root, strings.TrimPrefix(path, k.image))
		if !entry.IsDir() {
			return os.Link(path, name)
		}
		return os.MkdirAll(name, 0o755)
	})
	if err != nil {
		k.t.Fatalf("filling root folder: %v", err)
	}
}

// environment is that of a container, and nothing of this machine's.
func (k *kubelet) environment(pod *corev1.Pod, container corev1.Container) []string {
	k.t.Helper()
	server, err := url.Parse(plane.Config().Host)
	if err != nil {
		k.t.Fatal(err)
	}
	out := append(slices.Clone(k.config.Env), "KUBERNETES_SERVICE_HOST="+server.Hostname(), "KUBERNETES_SERVICE_PORT="+server.Port(),
		"HANDWERK_HEALTH_PROBE_BIND_ADDRESS=127.0.0.1:0", "HANDWERK_METRICS_BIND_ADDRESS=127.0.0.1:0")
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil {
			value = k.field(pod, from.FieldRef)
		}
		out = append(out, variable.Name+"="+value)
	}
	return out
}

// field is the value of a field of a Pod.
func (k *kubelet) field(pod *corev1.Pod, field *corev1.ObjectFieldSelector) string {
	k.t.Helper()
	values := map[string]string{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace}
	if field == nil || values[field.FieldPath] == "" {
		k.t.Fatalf("Pod %s asks for a value that the kubelet does not know: %v", pod.Name, field)
	}
	return values[field.FieldPath]
}

// mount writes the files of a volume, as the kubelet does: each is a link into a folder, which is a link into the newest one.
func (k *kubelet) mount(pod *corev1.Pod, path, volume string) {
	k.t.Helper()
	const newest = "..2026_01_01_00_00_00.0"
	err := os.MkdirAll(filepath.Join(path, newest), 0o755)
	if err == nil {
		err = os.Symlink(newest, filepath.Join(path, "..data"))
	}
	for name, text := range k.files(pod, volume) {
		if err == nil {
			err = os.WriteFile(filepath.Join(path, newest, name), []byte(text), 0o644)
		}
		if err == nil {
			err = os.Symlink(filepath.Join("..data", name), filepath.Join(path, name))
		}
	}
	if err != nil {
		k.t.Fatalf("mounting volume %s of Pod %s: %v", volume, pod.Name, err)
	}
}

// files are those of a volume.
func (k *kubelet) files(pod *corev1.Pod, volume string) map[string]string {
	k.t.Helper()
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
	if i < 0 {
		k.t.Fatalf("Pod %s has no volume %s", pod.Name, volume)
	}
	switch source := pod.Spec.Volumes[i].VolumeSource; {
	case source.ConfigMap != nil:
		return k.configMap(source.ConfigMap.Name)
	case source.Projected != nil:
		return k.projected(pod, source.Projected.Sources)
	default:
		k.t.Fatalf("volume %s of Pod %s is of a kind that the kubelet does not know", volume, pod.Name)
		return nil
	}
}

func (k *kubelet) configMap(name string) map[string]string {
	k.t.Helper()
	config, err := plane.Kubernetes().CoreV1().ConfigMaps(k.ns).Get(k.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return config.Data
}

// projected are the files of the volume with the token of the Pod's account, which the API server adds to each Pod.
func (k *kubelet) projected(pod *corev1.Pod, sources []corev1.VolumeProjection) map[string]string {
	k.t.Helper()
	files := map[string]string{}
	for _, source := range sources {
		switch {
		case source.ServiceAccountToken != nil:
			files[source.ServiceAccountToken.Path] = k.token(pod, source.ServiceAccountToken)
		case source.ConfigMap != nil:
			data := k.configMap(source.ConfigMap.Name)
			for _, item := range source.ConfigMap.Items {
				files[item.Path] = data[item.Key]
			}
		case source.DownwardAPI != nil:
			for _, item := range source.DownwardAPI.Items {
				files[item.Path] = k.field(pod, item.FieldRef)
			}
		default:
			k.t.Fatalf("Pod %s has a projected volume that the kubelet does not know: %v", pod.Name, source)
		}
	}
	return files
}

// token asks for a token of the Pod's account that is good as long as the Pod is there.
func (k *kubelet) token(pod *corev1.Pod, wanted *corev1.ServiceAccountTokenProjection) string {
	k.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: wanted.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	got, err := plane.Kubernetes().CoreV1().ServiceAccounts(k.ns).CreateToken(k.t.Context(), pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(fmt.Errorf("asking for a token of %s: %w", pod.Spec.ServiceAccountName, err))
	}
	return got.Status.Token
}
