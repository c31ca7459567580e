// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// shortestCertificate is the shortest time in seconds for which a certificate can be asked.
const shortestCertificate = 600

// keepRequest keeps the question of a CertificateSigningRequest, and says since when its conditions are so.
func keepRequest(next, old *certificatesv1.CertificateSigningRequest) {
	next.Spec = old.Spec
	for i := range next.Status.Conditions {
		c := &next.Status.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = metav1.Now()
		}
		if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = metav1.Now()
			if was := conditionOf(old, c.Type); was != nil && was.Status == c.Status {
				c.LastTransitionTime = was.LastTransitionTime
			}
		}
	}
}

func conditionOf(r *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	i := slices.IndexFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &r.Status.Conditions[i]
}

func checkRequest(f *findings, next, old *certificatesv1.CertificateSigningRequest) {
	if old == nil {
		checkQuestion(f, &next.Spec)
	}
	checkApproval(f, next, old)
}

// checkQuestion checks for what a certificate is asked.
func checkQuestion(f *findings, s *certificatesv1.CertificateSigningRequestSpec) {
	if err := parseRequest(s.Request); err != nil {
		f.invalid(spec().Child("request"), s.Request, err.Error())
	}
	usages := spec().Child("usages")
	if len(s.Usages) == 0 {
		f.required(usages, "")
	}
	for i, usage := range s.Usages {
		if !slices.Contains(knownUsages(), usage) {
			f.list = append(f.list, field.NotSupported(usages.Index(i), usage, knownUsages()))
		}
		if slices.Contains(s.Usages[:i], usage) {
			f.duplicate(usages.Index(i), usage)
		}
	}
	checkSigner(f, spec().Child("signerName"), s.SignerName)
	if seconds := s.ExpirationSeconds; seconds != nil && *seconds < shortestCertificate {
		f.invalid(spec().Child("expirationSeconds"), *seconds, "may not specify a duration less than 600 seconds (10 minutes)")
	}
}

// parseRequest returns why data are no request of a certificate in PEM, or nil.
func parseRequest(data []byte) error {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	return request.CheckSignature()
}

// checkSigner checks that the name of a signer is a domain and a path.
func checkSigner(f *findings, path *field.Path, name string) {
	if name == "kubernetes.io/legacy-unknown" {
		f.invalid(path, name, "the legacy signerName is not allowed via this API version")
		return
	}
	if !f.filled(path, name) {
		return
	}
	domain, rest, found := strings.Cut(name, "/")
	if !found || strings.Contains(rest, "/") {
		f.invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
		return
	}
	f.each(path, domain, utilvalidation.IsDNS1123Subdomain(domain))
	for part := range strings.SplitSeq(rest, ".") {
		f.each(path, rest, utilvalidation.IsDNS1123Label(part))
	}
}

// checkApproval checks the conditions of a request: decisions are final.
func checkApproval(f *findings, next, old *certificatesv1.CertificateSigningRequest) {
	path := field.NewPath("status", "conditions")
	if old != nil && equality.Semantic.DeepEqual(next.Status.Conditions, old.Status.Conditions) {
		return
	}
	seen := map[certificatesv1.RequestConditionType]bool{}
	for i, c := range next.Status.Conditions {
		at := path.Index(i)
		f.filled(at.Child("type"), string(c.Type))
		final := slices.Contains(decisions(), c.Type)
		switch known := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}; {
		case c.Status == "":
			f.required(at.Child("status"), "")
		case final && c.Status != corev1.ConditionTrue:
			f.list = append(f.list, field.NotSupported(at.Child("status"), c.Status, known[:1]))
		case !slices.Contains(known, c.Status):
			f.list = append(f.list, field.NotSupported(at.Child("status"), c.Status, known))
		}
		if seen[c.Type] {
			f.duplicate(at.Child("type"), c.Type)
		}
		seen[c.Type] = true
	}
	if seen[certificatesv1.CertificateApproved] && seen[certificatesv1.CertificateDenied] {
		const one, other = `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`
		f.last = append(f.last, field.Invalid(path, "{"+one+", "+other+"}", "must specify at most one of: `"+one+"`, `"+other+"`"))
	}
	for _, kind := range decisions() {
		if old != nil && conditionOf(old, kind) != nil && !seen[kind] {
			f.forbidden(path, fmt.Sprintf("updates may not remove a condition of type %q", kind))
		}
	}
}

// decisions are the conditions that end a request.
func decisions() []certificatesv1.RequestConditionType {
	return []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed}
}

// knownUsages are the usages that a certificate may have, in the order in which the API server names them.
func knownUsages() []certificatesv1.KeyUsage {
	out := []certificatesv1.KeyUsage{
		certificatesv1.UsageSigning, certificatesv1.UsageDigitalSignature, certificatesv1.UsageContentCommitment, certificatesv1.UsageKeyEncipherment,
		certificatesv1.UsageKeyAgreement, certificatesv1.UsageDataEncipherment, certificatesv1.UsageCertSign, certificatesv1.UsageCRLSign,
		certificatesv1.UsageEncipherOnly, certificatesv1.UsageDecipherOnly, certificatesv1.UsageAny, certificatesv1.UsageServerAuth,
		certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning, certificatesv1.UsageEmailProtection, certificatesv1.UsageSMIME,
		certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser, certificatesv1.UsageTimestamping,
		certificatesv1.UsageOCSPSigning, certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC,
	}
	slices.Sort(out)
	return out
}
