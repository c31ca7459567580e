// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestWarningsThatMayQuoteASecretAreNotLogged holds that other warnings of the API server are.
func TestWarningsThatMayQuoteASecretAreNotLogged(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	ctx := klog.NewContext(context.Background(), log)
	warnings{}.HandleWarningHeaderWithContext(ctx, 299, "", "the field is old")
	warnings{}.HandleWarningHeaderWithContext(dsl.Discreetly(ctx), 299, "", "hush is no good value")
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "the field is old") || strings.Contains(text, "hush") {
		t.Errorf("the log says %s", text)
	}
}
