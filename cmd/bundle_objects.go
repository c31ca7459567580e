// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// bundleTexts are the objects of a bundle that differ in names alone.
//
//go:embed bundle/*.yaml
var bundleTexts embed.FS

const (
	// mounted is the folder of the configuration in the Deployment.
	mounted = "/etc/handwerk"
	// mostConfig is the greatest size of a ConfigMap in bytes; etcd's limit is a little higher.
	mostConfig = 1 << 20
	// stopping is the time that a process needs to stop after the grace period of its handlers.
	stopping = 10 * time.Second
)

// bundle has the data for the objects of a deployment. Templates read its exported fields.
type bundle struct {
	Name, ConfigMap string
	// Namespace, Labels, Image, Args and Reader are YAML. Reader is the name of the ClusterRole to read metrics.
	Namespace, Labels, Image, Args, Reader string
	Replicas, Grace                        int
	Secure                                 bool
	// Webhooks: the operator answers webhooks.
	Webhooks bool
	// Certificates: the certificate of webhooks is that of cert-manager.
	Certificates bool
	// Outside is the name of objects without a namespace that must be DNS names.
	Outside string
	// Confinement is nil for an operator that is not confined. Egress are the destinations beside the API server and DNS.
	Confinement *confinement
	Egress      []destination
	// Items are the files of the ConfigMap. They are empty if all of them stand beside each other, under their keys.
	Items []item

	flags *bundleFlags
	op    *dsl.Operator
	// data is the configuration, by file name.
	data map[string]string
}

// item is a file that is mounted under a path.
type item struct{ Key, Path string }

// file is a part of a bundle.
type file struct{ name, text string }

// newBundle makes the data that the objects share.
func newBundle(f *bundleFlags, op *dsl.Operator) (*bundle, error) {
	data, err := configData(f.config)
	if err != nil {
		return nil, err
	}
	b := &bundle{Name: objectName(op.Name), Namespace: quoted(f.namespace), Replicas: f.replicas, Secure: f.secure, flags: f, op: op, data: data}
	if len(validation.IsDNS1123Label(b.Name+"-metrics")) > 0 {
		return nil, fmt.Errorf("deploying operator %s: its name is too long for that of a Service, which has at most 63 characters: %s-metrics", op.Name, b.Name)
	}
	b.Labels = "{app.kubernetes.io/name: handwerk, app.kubernetes.io/instance: " + quoted(op.Name) + "}"
	b.Image = strconv.Quote(f.image)
	b.Reader = quoted(outside(b.Name+"-metrics", f.namespace))
	b.Outside = quoted(b.Name + "." + f.namespace)
	b.Grace = graceOf(op)
	for _, text := range f.egress {
		to, err := parseEgress(text)
		if err != nil {
			return nil, err
		}
		b.Egress = append(b.Egress, to)
	}
	if f.confine != "" {
		b.Confinement = newConfinement(f, op)
	}
	args := []string{"run"}
	if b.Items, err = itemsOf(data); err != nil {
		return nil, err
	}
	if len(data) > 0 {
		b.ConfigMap = b.Name + "-" + digest(data)
		args = append(args, "--config", mounted)
	}
	if op.Settings.LeaderElection.Mode != dsl.LeaderLife {
		op.Settings.LeaderElection.Mode = dsl.LeaderLease
		args = append(args, "--leader-elect=lease")
	}
	if f.secure {
		args = append(args, "--"+ops.SecureFlag)
	}
	if b.Webhooks = op.NeedsWebhooks(); b.Webhooks {
		args = append(args, "--webhook-service="+b.webhookService())
	}
	if f.admission {
		args = append(args, b.leaveAdmission()...)
	}
	b.Args = "[" + strings.Join(args, ", ") + "]"
	return b, nil
}

// graceOf returns the termination grace period of the operator's Pods, in seconds.
func graceOf(op *dsl.Operator) int {
	return int(math.Ceil((cmp.Or(op.Settings.GracePeriod, dsl.DefaultGracePeriod) + stopping).Seconds()))
}

// configData reads the files that have documents of an operator, and those of the parts that it uses. It returns them by the
// paths at which they are mounted.
func configData(paths []string) (map[string]string, error) {
	names, faults := source.Files(paths)
	if len(faults) > 0 {
		return nil, faults
	}
	data, size := map[string]string{}, 0
	add := func(path string, text []byte) error {
		if _, twice := data[path]; twice {
			return fmt.Errorf("putting %s into a ConfigMap: there are two files of this name", path)
		}
		data[path] = string(text)
		if size += len(text); size > mostConfig {
			return fmt.Errorf("putting the configuration into a ConfigMap: it has more than 1 MiB")
		}
		return nil
	}
	var operators []string
	for _, name := range names {
		text, err := source.ReadFile(name)
		if err == nil && hasOperator(text) {
			operators = append(operators, name)
			err = add(keyOf(name), text)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range source.Parts(operators) {
		text, err := source.ReadFile(name)
		if err == nil {
			err = add(pathOf(name, operators), text)
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// pathOf returns the path of a part's file from the directory of the configuration that uses it.
func pathOf(name string, operators []string) string {
	for _, operator := range operators {
		if path, err := filepath.Rel(filepath.Dir(operator), name); err == nil && filepath.IsLocal(path) {
			return filepath.ToSlash(path)
		}
	}
	return filepath.Base(name) // no part is elsewhere
}

// itemsOf returns where the files of a configuration are mounted; nothing if each is mounted under its own key. A key cannot
// have a slash.
func itemsOf(data map[string]string) (out []item, err error) {
	elsewhere, by := false, map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(data)) {
		key := validKey(path)
		if other, twice := by[key]; twice {
			return nil, fmt.Errorf("putting %s into a ConfigMap: it has the key %s, as %s does", path, key, other)
		}
		elsewhere, by[key] = elsewhere || key != path, path
		out = append(out, item{key, path})
	}
	if !elsewhere {
		return nil, nil
	}
	return out, nil
}

// outsideKeys matches characters that keys of a ConfigMap cannot have.
var outsideKeys = regexp.MustCompile(`[^-._a-zA-Z0-9]`)

// validKey returns a key of a ConfigMap for a path.
func validKey(path string) string { return outsideKeys.ReplaceAllString(path, "-") }

// keyOf returns the name of a file in the ConfigMap. It is a valid key, and has an ending that is read from a
// directory.
func keyOf(name string) string {
	key := strings.TrimLeft(validKey(filepath.Base(name)), ".")
	if end := filepath.Ext(key); end != ".yaml" && end != ".yml" {
		key += ".yaml"
	}
	return key
}

// hasOperator reports whether a file has a document of an operator.
func hasOperator(text []byte) bool {
	for in := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var head struct {
			Kind string `yaml:"kind"`
		}
		if in.Decode(&head) != nil {
			return false
		}
		if head.Kind == config.Kind {
			return true
		}
	}
}

// digest returns ten digits that depend only on the files. JSON sorts the keys of maps.
func digest(data map[string]string) string {
	text, _ := json.Marshal(data) // a map of texts always marshals
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:10]
}

// files returns the objects in the order of applying them.
func (b *bundle) files() ([]file, error) {
	first, err := b.filled(choose{"namespace.yaml", b.flags.createNamespace}, choose{"service-account.yaml", true},
		choose{"confine.yaml", b.Confinement != nil})
	if err != nil {
		return nil, err
	}
	written, err := b.written()
	if err != nil {
		return nil, err
	}
	last, err := b.filled(choose{"deployment.yaml", true}, choose{"disruption-budget.yaml", true}, choose{"service.yaml", b.Secure}, choose{"webhook.yaml", b.Webhooks},
		choose{"certificates.yaml", b.Certificates},
		choose{"network-policy.yaml", !b.flags.noPolicy}, choose{"pod-monitor.yaml", b.flags.podMonitor})
	return slices.Concat(first, written, last), err
}

// choose is one of the texts, and whether the bundle includes it.
type choose struct {
	name   string
	wanted bool
}

// filled fills in the texts that the bundle includes.
func (b *bundle) filled(texts ...choose) (out []file, err error) {
	for _, text := range texts {
		if !text.wanted {
			continue
		}
		f, err := b.fill(text.name)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// fill fills in one of the texts.
func (b *bundle) fill(name string) (file, error) {
	t, err := template.ParseFS(bundleTexts, "bundle/"+name)
	if err != nil {
		return file{}, err
	}
	var out strings.Builder
	err = t.Execute(&out, b)
	return file{name, out.String()}, err
}

// written returns the CRDs, the roles and the ConfigMap.
func (b *bundle) written() ([]file, error) {
	var crds, roles bytes.Buffer
	var out []file
	all, err := b.crds()
	if err != nil {
		return nil, fmt.Errorf("writing CRDs: %w", err)
	}
	if len(all) > 0 {
		if err := writeYAML(&crds, all); err != nil {
			return nil, fmt.Errorf("writing CRDs: %w", err)
		}
		out = append(out, file{"crds.yaml", crds.String()})
	}
	head := []string{"What operator " + b.op.Name + " needs, as operator rbac prints it."}
	for _, handler := range rbac.Undeclared(b.op) {
		head = append(head, undeclared(handler))
	}
	if err := writeRoles(&roles, strings.Join(head, "\n"), b.op, account{b.flags.namespace, b.Name}, rbac.Roles(b.rights())); err != nil {
		return nil, fmt.Errorf("writing roles: %w", err)
	}
	out = append(out, file{"rbac.yaml", roles.String()})
	if b.flags.admission {
		admission, err := b.admission()
		if err != nil {
			return nil, err
		}
		out = append(out, admission...)
	}
	if b.ConfigMap == "" {
		return out, nil
	}
	text, err := b.configMap()
	return append(out, file{"config.yaml", text}), err
}

// rights returns the rights of the operator's account.
func (b *bundle) rights() []rbac.Rule {
	return rbac.Of(b.op, rbac.Settings{Namespace: b.flags.namespace, SecureMetrics: b.Secure, CRDs: crdsBeside(b.flags.config)})
}

// configMap returns the ConfigMap with the configuration. It is immutable: another configuration has another name.
func (b *bundle) configMap() (string, error) {
	data := map[string]string{}
	for path, text := range b.data {
		data[validKey(path)] = text
	}
	labels := &yaml.Node{}
	if err := yaml.Unmarshal([]byte(b.Labels), labels); err != nil {
		return "", err
	}
	var out bytes.Buffer
	in := yaml.NewEncoder(&out)
	in.SetIndent(2)
	err := in.Encode(struct {
		APIVersion string            `yaml:"apiVersion"`
		Kind       string            `yaml:"kind"`
		Metadata   map[string]any    `yaml:"metadata"`
		Immutable  bool              `yaml:"immutable"`
		Data       map[string]string `yaml:"data"`
	}{"v1", "ConfigMap", map[string]any{"name": b.ConfigMap, "namespace": b.flags.namespace, "labels": labels.Content[0]}, true, data})
	return out.String(), err
}

// kustomization lists all files of a bundle.
func kustomization(files []file) file {
	var out strings.Builder
	out.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n")
	for _, f := range files {
		out.WriteString("  - " + f.name + "\n")
	}
	return file{"kustomization.yaml", out.String()}
}
