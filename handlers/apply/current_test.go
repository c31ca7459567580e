// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const secrets = "secrets.v1"

// login is a child with a password that is made once.
const login = `{login: {%apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {size: "${string(self.spec.size)}"},
	data: {password: "${current.login.?data.?password.orValue(base64(generate(24)))}"}%}}`

// logins returns the child, with options.
func logins(options string) string {
	before, after := "", ""
	if options != "" {
		before, after = options+", template: {", "}"
	}
	out := strings.Replace(login, "%", before, 1)
	return strings.Replace(out, "%", after, 1)
}

// password returns the password that a Secret has; empty for none.
func password(c *kit.Cluster, name string) string {
	c.Advance(time.Second)
	o := c.Get(secrets, "default", name)
	if o == nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(o.Object, "data", "password")
	return text
}

// rests fails if the process writes anything within some minutes.
func rests(t *testing.T, c *kit.Cluster, p *kit.Process, when string) {
	t.Helper()
	p.Writes()
	c.Advance(10 * time.Minute)
	for _, w := range p.Writes() {
		t.Errorf("%s: there is a write: %v", when, w)
	}
}

// TestAGeneratedValueStays holds that a value is made once, whatever happens to the operator and its caches.
func TestAGeneratedValueStays(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		p := operate(t, c, logins(""), "{size: 1}")
		made := password(c, "login")
		if len(made) != 32 { // 24 characters in base64
			t.Fatalf("the password is %q", made)
		}
		if writes := p.Writes(); len(writes) > 2 { // the child, and the condition
			t.Errorf("making it took the writes %v", writes)
		}
		stays := func(when string) {
			t.Helper()
			if got := password(c, "login"); got != made {
				t.Errorf("%s the password is %q, want %q", when, got, made)
			}
		}
		rests(t, c, p, "when it is made")
		become(c, foos, "me", "spec.size", int64(2))
		stays("after a change")
		p.Restart()
		stays("after a restart")
		rests(t, c, p, "after a restart")
		become(c, secrets, "login", "data.other", "eA==")
		stays("when somebody adds a value")

		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		c.Omit(secrets, "default", "login")
		p.Restart()
		c.Advance(time.Minute)
		stays("when the cache does not show it")
		c.Reveal(secrets, "default", "login")

		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		c.Forbid("list", secrets)
		c.Forbid("watch", secrets)
		p.Restart()
		become(c, foos, "me", "spec.size", int64(3))
		c.Advance(time.Minute)
		stays("when Secrets cannot be listed")
		c.Allow("list", secrets)
		c.Allow("watch", secrets)
		c.Advance(10 * time.Minute)
		stays("when they can be again")
		if size, _, _ := unstructured.NestedString(c.Get(secrets, "default", "login").Object, "data", "size"); size != "Mw==" {
			t.Errorf("the size is %q", size)
		}
	})
}

// TestAGeneratedValueThatSomebodyTakesAwayIsMadeAgain holds what makes another value.
func TestAGeneratedValueThatSomebodyTakesAwayIsMadeAgain(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		p := operate(t, c, logins(""), "{size: 1}")
		made := password(c, "login")
		become(c, secrets, "login", "data.password", "bWluZQ==")
		if got := password(c, "login"); got != "bWluZQ==" {
			t.Errorf("somebody's own password became %q", got)
		}
		c.Update(secrets, "default", "login", func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, "data", "password")
		})
		second := password(c, "login")
		c.Delete(secrets, "default", "login")
		third := password(c, "login")
		if len(second) != 32 || len(third) != 32 || second == made || third == second {
			t.Errorf("passwords are %q, %q and %q", made, second, third)
		}
		rests(t, c, p, "at the end")
	})
}

// TestAGeneratedValueWhoseWriteGotNoAnswerStays holds that what was written is not made again.
func TestAGeneratedValueWhoseWriteGotNoAnswerStays(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.HoldWatches(secrets)
		c.LoseNext("patch", secrets)
		operate(t, c, logins(""), "{size: 1}")
		made := password(c, "login")
		c.Advance(time.Minute)
		if got := password(c, "login"); made == "" || got != made {
			t.Errorf("the password is %q, and was %q", got, made)
		}
		c.ReleaseWatches(secrets)
		c.Advance(time.Minute)
		if got := password(c, "login"); got != made {
			t.Errorf("the password is %q, and was %q", got, made)
		}
	})
}

// TestAGeneratedValueOutlivesItsOwner holds that who takes over a child takes over its value.
func TestAGeneratedValueOutlivesItsOwner(t *testing.T) {
	foo := "{apiVersion: example.com/v1, kind: Foo, metadata: {name: me, namespace: default}, spec: {size: 2}}"
	t.Run("that is retained", func(t *testing.T) {
		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
			p := operate(t, c, logins("onDelete: retain"), "{size: 1}")
			made := password(c, "login")
			c.Delete(foos, "default", "me")
			c.Settle()
			c.Create(foo)
			if got := password(c, "login"); made == "" || got != made {
				t.Errorf("the password is %q, and was %q", got, made)
			}
			rests(t, c, p, "at the end")
		})
	})
	t.Run("that is adopted", func(t *testing.T) {
		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
			c.Create("{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: default}, data: {password: bWluZQ==}}")
			p := operate(t, c, logins("adopt: ifUnowned"), "{size: 1}")
			if got := password(c, "login"); got != "bWluZQ==" {
				t.Errorf("the password is %q", got)
			}
			rests(t, c, p, "at the end")
		})
	})
	t.Run("that is somebody else's", func(t *testing.T) {
		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
			c.Create("{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: default}, data: {password: bWluZQ==}}")
			p := operate(t, c, logins(""), "{size: 1}")
			if got := password(c, "login"); got != "bWluZQ==" {
				t.Errorf("the password is %q", got)
			}
			c.Delete(secrets, "default", "login")
			c.Advance(10 * time.Minute)
			if got := password(c, "login"); len(got) != 32 {
				t.Errorf("the password is %q when nobody is in the way", got)
			}
			rests(t, c, p, "at the end")
		})
	})
}

// TestEachOfSeveralHasItsOwnGeneratedValue holds that children with forEach are found by their keys.
func TestEachOfSeveralHasItsOwnGeneratedValue(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		p := operate(t, c, `{login: {forEach: "${self.spec.users}", template: {apiVersion: v1, kind: Secret, metadata: {name: "login-${item}"},
			data: {password: "${current.login[?key].?data.?password.orValue(base64(generate(24)))}"}}}}`, "{users: [a, b]}")
		a, b := password(c, "login-a"), password(c, "login-b")
		if len(a) != 32 || len(b) != 32 || a == b {
			t.Fatalf("passwords are %q and %q", a, b)
		}
		become(c, foos, "me", "spec.users", []any{"c", "a"})
		p.Restart()
		if got, third := password(c, "login-a"), password(c, "login-c"); got != a || len(third) != 32 || password(c, "login-b") != "" {
			t.Errorf("passwords are %q, which was %q, and %q", got, a, third)
		}
		rests(t, c, p, "at the end")
	})
}

// TestWhatIsReadOfAChildBeforeRunsTheApplyAgain holds that a field of others that a template reads is news, and that the
// apply comes to rest.
func TestWhatIsReadOfAChildBeforeRunsTheApplyAgain(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		p := operate(t, c, `{
			db: {apiVersion: x.io/v1, kind: Thing, metadata: {name: db}, spec: {size: "${self.spec.size}"}},
			web: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {
				host: "${current.db.?status.?host.orValue('none')}", was: "${string(current.db.?spec.?size.orValue(0))}"}}}`, "{size: 1}")
		web := func(when, want string) {
			t.Helper()
			c.Advance(time.Second) // another run that is asked for at once comes a moment later
			data, _, _ := unstructured.NestedStringMap(c.Get(configMaps, "default", "web").Object, "data")
			if got := data["host"] + " " + data["was"]; got != want {
				t.Errorf("%s the child has %q, want %q", when, got, want)
			}
		}
		web("at first", "none 1") // the apply has run again for what it made itself
		rests(t, c, p, "at first")
		become(c, things, "db", "status", map[string]any{"host": "h"})
		web("when somebody sets the field", "h 1")
		rests(t, c, p, "after that")
		become(c, foos, "me", "spec.size", int64(2))
		web("when the handler itself changes it", "h 2")
		rests(t, c, p, "after that, too")
		become(c, things, "db", "status", map[string]any{"host": "h", "other": "x"})
		c.Settle()
		if writes := p.Writes(); len(writes) > 0 {
			t.Errorf("a field that is not read led to %v", writes)
		}
	})
}

// TestAnApplyThatDoesNotComeToRestIsStopped holds that an expression that gives something else each time is seen.
func TestAnApplyThatDoesNotComeToRestIsStopped(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		p := operate(t, c, `{n: {apiVersion: v1, kind: ConfigMap, metadata: {name: n},
			data: {n: "${string(int(current.n.?data.?n.orValue('0')) + 1)}"}}}`, "{}")
		c.Advance(time.Hour)
		if writes := p.Writes(); len(writes) > 100 {
			t.Errorf("it wrote %d times in an hour", len(writes))
		}
		var found []string
		for _, e := range c.Events() {
			found = append(found, e.Reason)
		}
		if !strings.Contains(strings.Join(found, " "), "Looping") {
			t.Errorf("events %v, want one that says so", found)
		}
	})
}

// TestCurrentIsWhatWasThereBefore holds what expressions see.
func TestCurrentIsWhatWasThereBefore(t *testing.T) {
	w := start(t, `{
		a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: "${self.spec.v}"}},
		b: {includeWhen: "current.a.?data.?v.orValue('') != 'stop'", template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b},
			data: {was: "${current.a.?data.?v.orValue('-')}", is: "${children.a.data.v}", own: "${current.b.?data.?was.orValue('-')}"}}}}`, "{v: one}")
	see := func(cause dsl.Cause, want string) {
		t.Helper()
		if err := w.run(cause); err != nil {
			t.Fatal(err)
		}
		data, _, _ := unstructured.NestedStringMap(w.objects["ConfigMap b"].live.Object, "data")
		if diff := cmp.Diff(want, data["was"]+" "+data["is"]+" "+data["own"]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	see(dsl.Create, "- one -")
	see(dsl.Child, "one one -")
	w.self["spec"] = map[string]any{"v": "two"}
	see(dsl.Update, "one two one")
	see(dsl.Child, "two two one")
	w.self["spec"] = map[string]any{"v": "stop"}
	see(dsl.Update, "two stop two")
	waits(t, w.run(dsl.Child), "ConfigMap b to be gone")
	if b := w.objects["ConfigMap b"]; b != nil && b.live.GetDeletionTimestamp() == nil {
		t.Error("b is there, although it is not included")
	}
}

// TestCurrentWaitsUntilTheChildrenCanBeRead holds that nothing is rendered before it is known what is there.
func TestCurrentWaitsUntilTheChildrenCanBeRead(t *testing.T) {
	w := start(t, logins(""), "{size: 1}")
	w.allErr = errBroken
	if err := w.run(dsl.Create); err == nil || !strings.Contains(err.Error(), "reading children: broken") {
		t.Errorf("error %v", err)
	}
	calls(t, w)
}

// TestWhatAnApplyReadsOfCurrent holds what is known of a handler: what wakes it, and what may be secret.
func TestWhatAnApplyReadsOfCurrent(t *testing.T) {
	built, err := build(t, `{
		login: {apiVersion: v1, kind: Secret, metadata: {name: login}, data: {password: "${current.login.?data.?password}"}},
		each: {forEach: [a, b], template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${item}"},
			data: {x: "${current.each[?key].?data.?x.orValue('')}", y: "${current.login.?metadata.?uid.orValue('')}"}}}}`, actions.Build{})
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, field := range built.Reads.ChildFields {
		fields = append(fields, field.String())
	}
	if diff := cmp.Diff("each.data.x login.metadata.uid login.data.password", strings.Join(fields, " ")); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"children.each", "children.login"}, built.Reads.Values); diff != "" {
		t.Errorf("sources of values (-want +got):\n%s", diff)
	}
}

// TestAValueThatSomebodySetsMeanwhileIsNotOverwritten holds that a template which keeps a value of its child does not put back an
// earlier one, though the cache shows that, and what else it wants comes all the same.
func TestAValueThatSomebodySetsMeanwhileIsNotOverwritten(t *testing.T) {
	for name, options := range map[string]string{"owned": "", "labelled": "ownership: labelled", "strict": "drift: strict", "in a rollout": "", "with forEach": ""} {
		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
			child := logins(options)
			switch name {
			case "in a rollout":
				child = `{login: {forEach: [a], key: "${item}", rollout: {maxUnavailable: 1}, template: {apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {size: "${string(self.spec.size)}"},
					data: {password: "${current.login[?key].?data.?password.orValue(base64(generate(24)))}"}}}}`
			case "with forEach":
				child = `{login: {forEach: [a], key: "${item}", template: {apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {size: "${string(self.spec.size)}"},
					data: {password: "${current.login[?key].?data.?password.orValue(base64(generate(24)))}"}}}}`
			}
			p := operate(t, c, child, "{size: 1}")
			if made := password(c, "login"); len(made) != 32 {
				t.Fatalf("%s: the password is %q", name, made)
			}
			c.HoldWatches(secrets)
			become(c, secrets, "login", "data.password", "bWluZQ==")
			become(c, foos, "me", "spec.size", int64(2))
			c.Advance(time.Second)
			c.ReleaseWatches(secrets)
			if got := password(c, "login"); got != "bWluZQ==" {
				t.Errorf("%s: somebody's own password became %q", name, got)
			}
			if size, _, _ := unstructured.NestedString(c.Get(secrets, "default", "login").Object, "data", "size"); size != "Mg==" {
				t.Errorf("%s: the size is %q", name, size)
			}
			rests(t, c, p, name+": at the end")
		})
	}
}

// TestAGeneratedValueStaysWithItsObject holds that a child whose key or handler has another name keeps its value, as its object does.
func TestAGeneratedValueStaysWithItsObject(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		p := operate(t, c, `{login: {forEach: "${[self.spec.key]}", key: "${item}", template: {apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {key: "${key}"},
			data: {password: "${current.login[?key].?data.?password.orValue(base64(generate(24)))}"}}}}`, "{key: a}")
		made := password(c, "login")
		become(c, foos, "me", "spec.key", "b")
		if got := password(c, "login"); got != made || len(got) != 32 {
			t.Errorf("with another key the password is %q, and was %q", got, made)
		}
		rests(t, c, p, "with another key")
	})
}
