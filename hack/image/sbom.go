// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // go.mod
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const unknown = "NOASSERTION"

//go:embed go.mod
var ownModules string

var rootsVersion = regexp.MustCompile(`\bgolang.org/x/crypto/x509roots/fallback (\S+)`)

// bill is a bill of materials that is being made.
type bill struct {
	*spdx.Document
	packages map[common.ElementID]bool
}

// writeSBOM writes the contents of the image: a program for each platform, with the modules recorded in it, and the
// certificates.
func (o *options) writeSBOM(index v1.ImageIndex, programs []program, labels map[string]string, created time.Time) error {
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	label := func(key string) string { return labels["org.opencontainers.image."+key] }
	b := bill{packages: map[common.ElementID]bool{}, Document: &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: o.name,
		DocumentNamespace: "https://spdx.org/spdxdocs/" + url.PathEscape(o.name) + "-" + digest.Hex,
		CreationInfo: &spdx.CreationInfo{
			Created: created.Format(time.RFC3339), Creators: []common.Creator{{CreatorType: "Tool", Creator: "handwerk-hack-image"}},
		},
	}}
	image := &spdx.Package{
		PackageName: o.name, PackageSPDXIdentifier: "Image", PackageVersion: label("version"), PrimaryPackagePurpose: "CONTAINER",
		PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: digest.Hex}},
	}
	b.add("DOCUMENT", common.TypeRelationshipDescribe, image)
	for _, p := range programs {
		if err := b.addProgram(p, cmp.Or(label("licenses"), unknown), label("version")); err != nil {
			return err
		}
	}
	roots := rootsVersion.FindStringSubmatch(ownModules)
	b.add("Image", common.TypeRelationshipContains, module(&debug.Module{Path: "golang.org/x/crypto/x509roots/fallback", Version: roots[1]}))
	out, err := os.Create(o.sbom)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := spdxjson.Write(b.Document, out, spdxjson.Indent("  ")); err != nil {
		return err
	}
	return out.Close()
}

// addProgram adds a program, its modules and Go's standard library.
func (b *bill) addProgram(p program, license, version string) error {
	content, err := os.ReadFile(p.file)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	main := module(&p.info.Main)
	main.PackageName, main.PackageVersion = p.info.Path, version
	main.PackageSPDXIdentifier = common.ElementID("Program-" + p.platform.OS + "-" + p.platform.Architecture)
	main.PackageFileName, main.PrimaryPackagePurpose = programPath, "APPLICATION"
	main.PackageLicenseDeclared = license
	main.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: hex.EncodeToString(sum[:])}}
	main.PackageComment = "built for " + p.platform.String()
	b.add("Image", common.TypeRelationshipContains, main)
	modules := slices.SortedFunc(slices.Values(p.info.Deps), func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	for _, each := range append(modules, &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(p.info.GoVersion, "go")}) {
		for each.Replace != nil {
			each = each.Replace
		}
		b.add(main.PackageSPDXIdentifier, common.TypeRelationshipDependsOn, module(each))
	}
	return nil
}

// add adds a package, unless it exists, and its relationship to another element.
func (b *bill) add(to common.ElementID, relationship string, p *spdx.Package) {
	p.PackageDownloadLocation = cmp.Or(p.PackageDownloadLocation, unknown)
	p.PackageLicenseConcluded, p.PackageCopyrightText = unknown, unknown
	p.PackageLicenseDeclared = cmp.Or(p.PackageLicenseDeclared, unknown)
	if !b.packages[p.PackageSPDXIdentifier] {
		b.packages[p.PackageSPDXIdentifier] = true
		b.Packages = append(b.Packages, p)
	}
	b.Relationships = append(b.Relationships, &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(to)), RefB: common.MakeDocElementID("", string(p.PackageSPDXIdentifier)), Relationship: relationship,
	})
}

// module is a Go module as a package. Its h1 sum, which go.sum has, is no checksum that SPDX knows, but a reference.
func module(m *debug.Module) *spdx.Package {
	p := &spdx.Package{
		PackageName: m.Path, PackageVersion: m.Version, PrimaryPackagePurpose: "LIBRARY",
		PackageSPDXIdentifier: common.ElementID("Module-" + identifier(m.Path+"-"+m.Version)),
		PackageExternalReferences: []*spdx.PackageExternalReference{
			{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: packageURL(m)},
		},
	}
	if m.Sum != "" {
		p.PackageExternalReferences = append(p.PackageExternalReferences, &spdx.PackageExternalReference{Category: common.CategoryOther, RefType: "go-sum", Locator: m.Sum})
	}
	return p
}

var notOfIdentifiers = regexp.MustCompile(`[^A-Za-z0-9.-]`)

// identifier replaces characters that an SPDX identifier cannot have by their numbers.
func identifier(text string) string {
	return notOfIdentifiers.ReplaceAllStringFunc(text, func(s string) string { return fmt.Sprintf("-%x-", s) })
}

// packageURL returns the module's package URL. Its specification requires lower case for Go.
func packageURL(m *debug.Module) string {
	elements := strings.Split(strings.ToLower(m.Path), "/")
	for i := range elements {
		elements[i] = url.PathEscape(elements[i])
	}
	purl := "pkg:golang/" + path.Join(elements...)
	if m.Version != "" && m.Version != "(devel)" {
		purl += "@" + strings.ReplaceAll(url.PathEscape(m.Version), "+", "%2B")
	}
	return purl
}
