// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestTheSameCommitGivesTheSameBytes builds from two checkouts in different folders.
func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	tests := map[string]struct {
		files  map[string]string
		change func(*options)
		// fresh: the second build has an empty build cache.
		fresh bool
	}{
		"a small program for both platforms, the second time without a build cache": {files: small, fresh: true},
		"the operator for one platform": {files: repository(t), change: func(o *options) {
			o.main, o.platforms = "./cmd/operator", "linux/amd64"
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			first := built(t, checkout(t, test.files), test.change)
			if test.fresh {
				t.Setenv("GOCACHE", t.TempDir())
			}
			second := built(t, checkout(t, test.files), test.change)
			if read(t, first.output) != read(t, second.output) {
				t.Errorf("the archives differ:\n%s\n%s", digests(t, first.output), digests(t, second.output))
			}
			if diff := cmp.Diff(read(t, first.sbom), read(t, second.sbom)); diff != "" {
				t.Errorf("the bills of materials differ:\n%s", diff)
			}
			billsEachModule(t, first)
		})
	}
}

// repository is this repository's Go source as it is now, committed or not.
func repository(t *testing.T) map[string]string {
	t.Helper()
	dir, files := root(t), map[string]string{}
	for name := range strings.SplitSeq(git(t, dir, "ls-files", "-co", "--exclude-standard"), "\n") {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			files[name] = read(t, filepath.Join(dir, name))
		}
	}
	return files
}

func digests(t *testing.T, archive string) string {
	t.Helper()
	headers, _ := entries(t, strings.NewReader(read(t, archive)))
	var names []string
	for _, header := range headers {
		names = append(names, header.Name)
	}
	return strings.Join(names, "\n")
}

func TestTheArchiveIsBothALayoutAndWhatDockerSaves(t *testing.T) {
	dir := checkout(t, small)
	o := built(t, dir, func(o *options) {
		o.licenses, o.arguments = "Apache-2.0", []string{"run", "--config", "/etc/orders"}
	})
	headers, contents := entries(t, strings.NewReader(read(t, o.output)))
	if !slices.IsSortedFunc(headers, func(a, b *tar.Header) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("the entries are not sorted:\n%s", digests(t, o.output))
	}
	for _, header := range headers {
		if got := header.ModTime.UTC().Format("2006-01-02T15:04:05Z"); got != "2026-02-03T04:05:06Z" || header.Uid != 0 || header.Uname != "" {
			t.Errorf("%s is of %s and belongs to %d %q", header.Name, got, header.Uid, header.Uname)
		}
	}
	for _, want := range []string{
		`"io.containerd.image.name":"docker.io/shop/orders:v1"`, `"org.opencontainers.image.ref.name":"v1"`,
	} {
		if !strings.Contains(contents["index.json"], want) {
			t.Errorf("index.json has no %s:\n%s", want, contents["index.json"])
		}
	}

	image := index(t, o.output)
	if err := validate.Index(image); err != nil {
		t.Errorf("the index is not valid: %v", err)
	}
	manifest, err := image.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, each := range manifest.Manifests {
		platforms = append(platforms, each.Platform.String())
		one, err := image.Image(each.Digest)
		if err != nil {
			t.Fatal(err)
		}
		isThePlatforms(t, one, each.Platform)
		hasTheConfig(t, one, git(t, dir, "rev-parse", "HEAD"))
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}

	tag, err := name.NewTag("shop/orders:v1")
	if err != nil {
		t.Fatal(err)
	}
	docker, err := tarball.ImageFromPath(o.output, &tag)
	if err != nil {
		t.Fatalf("reading the archive as docker load does: %v", err)
	}
	if err := validate.Image(docker); err != nil {
		t.Errorf("Docker's image is not valid: %v", err)
	}
	first, err := image.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(configName(t, first), configName(t, docker)); diff != "" {
		t.Errorf("Docker's image is another (-first of the index +Docker's):\n%s", diff)
	}
}

func configName(t *testing.T, image v1.Image) string {
	t.Helper()
	hash, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

// isThePlatforms expects the files of an image, and a static program for the platform.
func isThePlatforms(t *testing.T, image v1.Image, platform *v1.Platform) {
	t.Helper()
	if err := validate.Image(image); err != nil {
		t.Errorf("%s: the image is not valid: %v", platform, err)
	}
	headers, contents := entries(t, mutate.Extract(image))
	modes := map[string]string{}
	for _, header := range headers {
		modes[header.Name] = header.FileInfo().Mode().String()
		if header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s: %s belongs to %d:%d", platform, header.Name, header.Uid, header.Gid)
		}
	}
	want := map[string]string{
		"operator": "-rwxr-xr-x", "etc": "drwxr-xr-x", "etc/group": "-rw-r--r--", "etc/passwd": "-rw-r--r--",
		"etc/ssl": "drwxr-xr-x", "etc/ssl/certs": "drwxr-xr-x", "etc/ssl/certs/ca-certificates.crt": "-rw-r--r--",
	}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("%s: files (-want +got):\n%s", platform, diff)
	}
	isStatic(t, contents["operator"], platform)
}

func hasTheConfig(t *testing.T, image v1.Image, commit string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User: "65532:65532", WorkingDir: "/", Entrypoint: []string{"/operator"}, Cmd: []string{"run", "--config", "/etc/orders"},
		Env: []string{"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels: map[string]string{
			"org.opencontainers.image.created":  "2026-02-03T04:05:06Z",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.revision": commit,
			"org.opencontainers.image.source":   "https://github.com/shop/orders",
			"org.opencontainers.image.title":    "operator",
			"org.opencontainers.image.version":  commit[:12],
		},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestTheVersionIsWhatGitSays(t *testing.T) {
	tests := map[string]struct {
		change func(t *testing.T, dir string)
		want   string
	}{
		"a commit without a tag": {func(*testing.T, string) {}, `[0-9a-f]{12}`},
		"a tag":                  {func(t *testing.T, dir string) { git(t, dir, "tag", "v1.2.3") }, `v1\.2\.3`},
		"a commit after a tag": {func(t *testing.T, dir string) {
			git(t, dir, "tag", "v1.2.3")
			commit(t, dir)
		}, `v1\.2\.3-1-g[0-9a-f]{12}`},
		"a changed file": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "main.go"), "package main\n") }, `[0-9a-f]{12}-dirty`},
		"a file that git does not know": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "more.go"), "package main\n")
		}, `[0-9a-f]{12}-dirty`},
		"no repository": {func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		}, "devel"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := checkout(t, small)
			test.change(t, dir)
			rev, err := (&options{dir: dir}).revision(t.Context())
			if err != nil || !regexp.MustCompile("^"+test.want+"$").MatchString(rev.version) {
				t.Errorf("version is %q (%v), want %s", rev.version, err, test.want)
			}
		})
	}
}

// TestAPersonsSettingsChangeNothing holds that the image is the same whatever a person has set for go and for git.
func TestAPersonsSettingsChangeNothing(t *testing.T) {
	one := func(o *options) { o.platforms = "linux/amd64" }
	plain := read(t, built(t, checkout(t, small), one).output)

	settings := filepath.Join(t.TempDir(), "env")
	write(t, settings, "GOFLAGS=-gcflags=-N\n")
	t.Setenv("GOENV", settings)
	dir := checkout(t, small)
	git(t, dir, "config", "core.abbrev", "20")
	if read(t, built(t, dir, one).output) != plain {
		t.Error("the image is another one")
	}
}

// TestASignedCommit holds that the revision is read, too, where git shows signatures.
func TestASignedCommit(t *testing.T) {
	t.Setenv("GNUPGHOME", t.TempDir())
	dir := checkout(t, small)
	signed := strings.Replace(git(t, dir, "cat-file", "commit", "HEAD"), "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n no\n -----END PGP SIGNATURE-----\n\n", 1)
	file := filepath.Join(t.TempDir(), "commit")
	write(t, file, signed+"\n")
	commit := git(t, dir, "hash-object", "-t", "commit", "-w", file)
	git(t, dir, "reset", "-q", commit)
	git(t, dir, "config", "log.showSignature", "true")
	if rev, err := (&options{dir: dir}).revision(t.Context()); err != nil || rev.commit != commit {
		t.Errorf("the commit is %q (%v), want %s", rev.commit, err, commit)
	}
}

func TestTheEnvironmentMaySayTheTime(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	rev, err := (&options{dir: checkout(t, small)}).revision(t.Context())
	if got := rev.created.Format("2006-01-02"); err != nil || got != "1970-01-02" {
		t.Errorf("time is %s (%v)", got, err)
	}
}

func TestANameHasTheFormThatEachLoaderStores(t *testing.T) {
	for text, want := range map[string][2]string{
		"handwerk":                  {"handwerk:latest", "docker.io/library/handwerk:latest"},
		"handwerk:dev":              {"handwerk:dev", "docker.io/library/handwerk:dev"},
		"shop/orders:v1":            {"shop/orders:v1", "docker.io/shop/orders:v1"},
		"registry.example.com/a:v1": {"registry.example.com/a:v1", "registry.example.com/a:v1"},
		"localhost:5000/a/b:v1":     {"localhost:5000/a/b:v1", "localhost:5000/a/b:v1"},
	} {
		tag, err := name.NewTag(text)
		if err != nil {
			t.Fatal(err)
		}
		if familiar, canonical := names(tag); familiar != want[0] || canonical != want[1] {
			t.Errorf("%s is %s and %s, want %v", text, familiar, canonical, want)
		}
	}
}

// TestMakeBuildsAnyProgram holds that make image builds the program that a person says, under the name and with the arguments that
// they say.
func TestMakeBuildsAnyProgram(t *testing.T) {
	says := exec.CommandContext(t.Context(), "make", "-n", "-C", root(t), "image", "MAIN=./cmd/mine", "IMAGE=mine:v1", "PLATFORMS=linux/arm64", "IMAGE_FLAGS=-- serve")
	out, err := says.CombinedOutput()
	if err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	want := "go run . -dir " + root(t) + " -o " + filepath.Join(root(t), "bin", "image.tar") + " -main ./cmd/mine -name mine:v1 -platforms linux/arm64 -- serve"
	if got := strings.Join(strings.Fields(strings.ReplaceAll(string(out), "\\\n", " ")), " "); !strings.Contains(got, want) {
		t.Errorf("make image does %s\nwant %s", got, want)
	}
}
