// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// short is a Secret whose value is found by trying.
const short = `{apiVersion: v1, kind: Secret, metadata: {name: pin}, data: {pin: MTIzNA==}}`

// playWithSecrets plays with an operator for Secrets, whose own are in the namespace ops.
func playWithSecrets(t *testing.T, play func(s *scene.Stage)) {
	t.Helper()
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		s.Operator.Resource(scene.Secrets, func(secret *dsl.Resource) {
			secret.On(scene.CreateAndUpdate(), "changed", s.Note("changed"))
		})
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
		play(s)
	}})
}

// launchInOps starts the operator in the namespace ops.
func launchInOps(s *scene.Stage) {
	s.T.Helper()
	s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Namespace = "ops" })
}

// storedDigest is the digest that the progress has of a Secret.
func storedDigest(s *scene.Stage, name string) (digest, text string) {
	s.T.Helper()
	text = s.Get(scene.Secrets, "default", name).GetAnnotations()[scene.StateAnnotation]
	var found struct {
		Handlers map[string]struct {
			Seen string `json:"seen"`
		} `json:"handlers"`
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		s.T.Fatal(err)
	}
	return found.Handlers["changed"].Seen, text
}

// digestWithoutKey is the digest that anybody can work out of a Secret.
func digestWithoutKey(s *scene.Stage, name string) string {
	return progress.Digest(progress.Essence(s.Get(scene.Secrets, "default", name).Object))
}

// TestDigestsOfSecretsAreKeyed holds that a short Secret cannot be found by trying values until one comes to the digest that
// lies on it, and that the key is there for every process, is made once, and is no handler's to see.
func TestDigestsOfSecretsAreKeyed(t *testing.T) {
	playWithSecrets(t, func(s *scene.Stage) {
		launchInOps(s)
		s.Create(short)
		s.Create(strings.ReplaceAll(short, "pin}", "twin}"))
		s.CalledInAnyOrder("changed create", "changed create")
		digest, text := storedDigest(s, "pin")
		if digest == "" || strings.Contains(text, digestWithoutKey(s, "pin")) {
			t.Errorf("the digest is one that anybody can work out: %s", text)
		}
		key := s.Get(scene.Secrets, "ops", "op-key")
		if key == nil || key.Object["immutable"] != true {
			t.Fatalf("the key is %v", key)
		}
		s.Forget()
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Called()
		s.Wrote()
		s.Update(scene.Secrets, "default", "pin", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"pin": "NDMyMQ=="} })
		s.Called("changed update")
		if now := s.Get(scene.Secrets, "ops", "op-key"); now.GetUID() != key.GetUID() || len(now.GetAnnotations()) > 0 {
			t.Errorf("the key is another one, or was handled: %v", now)
		}
	})
}

// TestALostKeyIsOneChange holds that each Secret counts as changed once when the key is lost.
func TestALostKeyIsOneChange(t *testing.T) {
	playWithSecrets(t, func(s *scene.Stage) {
		launchInOps(s)
		s.Create(short)
		s.Called("changed create")
		s.Delete(scene.Secrets, "ops", "op-key")
		s.Forget()
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Called("changed update")
		s.Forget()
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Called()
		s.Wrote()
	})
}

// TestNoSecretIsHandledWithoutTheRightToTheKey holds that nothing of a Secret is handled then, that the log says which right
// is missing, that others go on, and that it heals.
func TestNoSecretIsHandledWithoutTheRightToTheKey(t *testing.T) {
	playWithSecrets(t, func(s *scene.Stage) {
		s.Forbid("create", scene.Secrets, "ops")
		var all scene.Texts
		namespace := func(e *engine.Settings) { e.Namespace = "ops" }
		all.Launch(s, namespace)
		s.Create(short)
		s.Create(scene.Web)
		s.Advance(10 * time.Minute)
		if calls := s.Take(); strings.Contains(fmt.Sprint(calls), "changed") || len(calls) == 0 {
			t.Errorf("called were %v", calls)
		}
		if text := s.Get(scene.Secrets, "default", "pin").GetAnnotations()[scene.StateAnnotation]; text != "" {
			t.Errorf("a digest was stored: %s", text)
		}
		text := all.All(s)
		for _, want := range []string{"getting the key of digests of Secrets from Secret ops/op-key", `cannot create resource \"secrets\"`, "operator rbac prints the roles"} {
			if !strings.Contains(text, want) && !strings.Contains(text, strings.ReplaceAll(want, `\`, "")) {
				t.Errorf("nothing says %q:\n%s", want, text)
			}
		}
		s.Allow("create", scene.Secrets, "ops")
		s.Advance(10 * time.Minute)
		s.Called("changed create")
	})
}
