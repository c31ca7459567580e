// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// nonroot is the user of the image.
const nonroot = 65532

// asContainer starts a program in the root file system $1, as a runtime does: read-only, in a mount namespace of its own, as the
// user of the image. Each command takes the place of the one before, so signals reach the program.
const asContainer = `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && root=$1 && shift && exec chroot --userspec=65532:65532 "$root" "$@"`

// TestTheImageRuns builds the image as make image does, unpacks it, and runs it where the image's files and the mounted ones are all
// there is.
func TestTheImageRuns(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, who alone may mount a file system and change the root folder")
	}
	root, config := unpackedImage(t)
	want := []string{"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "operator"}
	if diff := cmp.Diff(want, filesOf(t, root)); diff != "" {
		t.Errorf("files of the image (-want +got):\n%s", diff)
	}
	if config.User != "65532:65532" {
		t.Errorf("user is %s", config.User)
	}
	knowsTimeZones(t, root, config)

	ns, user := plane.Namespace(t), plane.User("image")
	user.AllowIn(t, ns, fooRules()...)
	if host := user.Config().Host; !strings.HasPrefix(host, "https://") {
		t.Fatalf("the API server is at %s", host)
	}
	mounted(t, root, "etc/handwerk/operator.yaml", "../../samples/foo/operator.yaml")
	mounted(t, root, "etc/access/kubeconfig", cluster.WriteKubeconfig(t, user.Config()))
	program := plane.Operator(t, contained(root, config, append(config.Cmd, "-n", ns)...))
	awaitReadyz(t, program, "[+]resource/foos.v1alpha1.samplecontroller.k8s.io ok")
	mayNotWrite(t, program)
	stageIn(ns).settled(t, "from-the-image", 2)
	plane.Objects(deployments, ns).Get(t, "from-the-image")
	mustLogNoError(t, program.Lines)
	if exit := program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
}

// knowsTimeZones validates a schedule in a time zone. The machine may have a file of the zone, the image has not.
func knowsTimeZones(t *testing.T, root string, config imageConfig) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(file, []byte(zoned), 0o600); err != nil {
		t.Fatal(err)
	}
	mounted(t, root, "etc/zoned/operator.yaml", file)
	program := plane.Operator(t, contained(root, config, "validate", "--config", "/etc/zoned"))
	if exit := program.Wait(t); exit.Code != 0 {
		t.Errorf("validating a time zone: exit code %d:\n%s", exit.Code, strings.Join(program.All(), "\n"))
	}
}

// contained launches the image's program.
func contained(root string, config imageConfig, args ...string) cluster.Launch {
	return cluster.Launch{
		Program: "unshare", Args: slices.Concat([]string{"--mount", "--", "sh", "-c", asContainer, "sh", root}, config.Entrypoint, args),
		Env: append([]string{"KUBECONFIG=/etc/access/kubeconfig"}, config.Env...),
	}
}

const zoned = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: zoned}
resources:
  - resource: foos.v1alpha1.samplecontroller.k8s.io
    handlers:
      - {id: nightly, cron: 0 3 * * *, timeZone: Europe/Berlin, log: {message: good night}}
`

// imageConfig is what an image says of its containers.
type imageConfig struct {
	User                 string
	Env, Entrypoint, Cmd []string
}

// imageArchive is the content of the archive that make image writes for this machine, by the names of its files. It is built once.
var imageArchive = sync.OnceValues(func() (map[string]string, error) {
	dir, err := os.MkdirTemp("", "handwerk-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	archive := filepath.Join(dir, "image.tar")
	build := exec.Command("go", "run", "-C", "../../hack/image", ".", "-dir", "../..", "-o", archive,
		"-platforms", "linux/"+runtime.GOARCH, "--", "run", "--config", "/etc/handwerk")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	in, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	blobs := map[string]string{}
	return blobs, eachEntry(in, func(header *tar.Header, content io.Reader) error {
		text, err := io.ReadAll(content)
		blobs[header.Name] = string(text)
		return err
	})
})

// unpackedImage builds the image for this machine, and applies its layers to a folder.
func unpackedImage(t *testing.T) (root string, config imageConfig) {
	t.Helper()
	blobs, err := imageArchive()
	if err != nil {
		t.Fatalf("building image: %v", err)
	}
	var manifest []struct {
		Config string
		Layers []string
	}
	var whole struct{ Config imageConfig }
	if err := json.Unmarshal([]byte(blobs["manifest.json"]), &manifest); err != nil {
		t.Fatalf("reading manifest: %v", err)
	}
	if err := json.Unmarshal([]byte(blobs[manifest[0].Config]), &whole); err != nil {
		t.Fatalf("reading config: %v", err)
	}
	root = t.TempDir()
	for _, layer := range manifest[0].Layers {
		inflated, err := gzip.NewReader(strings.NewReader(blobs[layer]))
		if err == nil {
			err = eachEntry(inflated, func(header *tar.Header, content io.Reader) error { return extract(root, header, content) })
		}
		if err != nil {
			t.Fatalf("reading layer: %v", err)
		}
	}
	return root, whole.Config
}

func eachEntry(archive io.Reader, do func(*tar.Header, io.Reader) error) error {
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(header, r)
		}
		if err != nil {
			return err
		}
	}
}

// extract writes a file or a folder with its owner and mode.
func extract(root string, header *tar.Header, content io.Reader) error {
	path := filepath.Join(root, header.Name)
	if header.Typeflag == tar.TypeDir {
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
	} else {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return errors.Join(os.Chown(path, header.Uid, header.Gid), os.Chmod(path, header.FileInfo().Mode()))
}

func filesOf(t *testing.T, root string) (files []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// mounted puts a file into the root file system, as a ConfigMap or a Secret comes there. The image's user may read it.
func mounted(t *testing.T, root, name, source string) {
	t.Helper()
	content, err := os.ReadFile(source)
	path := filepath.Join(root, name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, content, 0o400)
	}
	if err == nil {
		err = os.Chown(path, nonroot, nonroot)
	}
	if err != nil {
		t.Fatalf("mounting %s: %v", name, err)
	}
}

// mayNotWrite expects a process without root's rights, in a root file system that not even root can write.
func mayNotWrite(t *testing.T, program *cluster.Operator) {
	t.Helper()
	process := fmt.Sprintf("/proc/%d/", program.PID())
	status, err := os.ReadFile(process + "status")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", nonroot), fmt.Sprintf("Gid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", nonroot),
		"CapEff:\t0000000000000000\n", "CapPrm:\t0000000000000000\n",
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("the process has no %q:\n%s", want, status)
		}
	}
	if _, err := os.Stat(process + "root/operator"); err != nil {
		t.Errorf("the process has another root folder: %v", err)
	}
	if err := os.WriteFile(process+"root/written", nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("writing to the process's root folder: %v, want %v", err, syscall.EROFS)
	}
}
