// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
)

// retryLook is the time between two looks whether the operator has taken the annotation off.
const retryLook = 500 * time.Millisecond

// retryFlags are the flags of retry.
type retryFlags struct {
	which     whichFlags
	namespace string
	handlers  []string
	timeout   time.Duration
}

func (p *program) retryCommand() *cobra.Command {
	f := &retryFlags{}
	c := &cobra.Command{
		Use:   "retry RESOURCE/NAME --config FILE|DIR",
		Short: "Have handlers run now that failed or wait",
		Long: `Have handlers of one object run now: those that failed for good, wait for their next
attempt, or wait for other objects. Their attempts count from the first, and a deadline
begins again. Steps that are done stay done.

It sets the annotation PREFIX/retry, for which you need the right to patch the object,
and waits until the operator has taken it off. Handlers with nothing to retry do not run.`,
		Example: `  operator retry website/home --config webapp
  operator retry website/home -n shop --operator webapp --handler deployment`,
		Args:    oneObject,
		PreRunE: f.which.usage(),
		RunE: func(c *cobra.Command, args []string) error {
			return p.retry(c.Context(), f, args[0], c.OutOrStdout())
		},
	}
	f.add(c.Flags())
	return c
}

func (f *retryFlags) add(set *pflag.FlagSet) {
	set.StringSliceVar(&f.handlers, "handler", nil, "the `id` of a handler; repeatable (default all)")
	addObjectNamespace(set, &f.namespace)
	set.DurationVar(&f.timeout, "timeout", 30*time.Second, "wait so long for the operator; 0 does not wait")
	f.which.addNames(set)
}

// oneObject refuses arguments that do not name one object.
func oneObject(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		if resource, name, found := strings.Cut(args[0], "/"); found && resource != "" && name != "" {
			return withoutNamespace(resource, name)
		}
	}
	return errors.New("want one object, as RESOURCE/NAME")
}

// withoutNamespace refuses the name of an object that has its namespace before it, as lines of play and cases have it.
func withoutNamespace(resource, name string) error {
	namespace, last, found := strings.Cut(name, "/")
	if !found {
		return nil
	}
	return fmt.Errorf("want RESOURCE/NAME, found %q: write %s/%s -n %s", resource+"/"+name, resource, last, namespace)
}

// retry sets the annotation, and waits until the operator has taken it off.
func (p *program) retry(ctx context.Context, f *retryFlags, object string, out io.Writer) error {
	op, err := p.operatorOf(&f.which)
	if err != nil {
		return err
	}
	config, namespace, err := p.access(ctx, &f.which.kube)
	if err != nil {
		return err
	}
	config.UserAgent = userAgent(op.Name)
	resource, name, _ := strings.Cut(object, "/")
	_, gvr, namespace, err := discoverResource(config, resource, cmp.Or(f.namespace, namespace, metav1.NamespaceDefault))
	if err == nil {
		err = f.known(op, gvr.GroupResource())
	}
	if err != nil {
		return fmt.Errorf("retrying %s: %w", object, err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	client := objects.Resource(gvr).Namespace(namespace)
	value := cmp.Or(strings.Join(f.handlers, ","), "*")
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{op.RetryAnnotation(): value}}})
	if err != nil {
		return err
	}
	if _, err = client.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("retrying %s: %w", object, err)
	}
	if f.timeout <= 0 {
		fmt.Fprintf(out, "%s: operator %s is asked to retry\n", object, op.Name)
		return nil
	}
	return f.taken(ctx, op, client, object, out)
}

// taken waits until the annotation is off, and says what the object says then.
func (f *retryFlags) taken(ctx context.Context, op *dsl.Operator, client dynamic.ResourceInterface, object string, out io.Writer) error {
	_, name, _ := strings.Cut(object, "/")
	var last *unstructured.Unstructured
	err := wait.PollUntilContextTimeout(ctx, retryLook, f.timeout, true, func(ctx context.Context) (bool, error) {
		o, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = o
		return o.GetAnnotations()[op.RetryAnnotation()] == "", nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("retrying %s: operator %s has not taken up the annotation %s in %s: it does not run, does not handle the object, or is paused; it is there still", object, op.Name, op.RetryAnnotation(), f.timeout)
	}
	if err != nil {
		return fmt.Errorf("retrying %s: waiting for operator %s: %w", object, op.Name, err)
	}
	fails := conditions.Text(conditions.Of(last, conditions.HandlersFailing), "message")
	fmt.Fprintf(out, "%s: operator %s has taken up the retry%s\n", object, op.Name, strings.TrimSuffix("; the object says: "+fails, "; the object says: "))
	return nil
}

// known refuses ids that no handler of the resource has. Where only the operator's name is given, its handlers are not known here.
func (f *retryFlags) known(op *dsl.Operator, of schema.GroupResource) error {
	if len(op.Resources()) == 0 {
		return nil
	}
	var ids []string
	for r, h := range op.Handlers() {
		if r.Name.Resource == of.Resource && r.Name.Group == of.Group {
			ids = append(ids, h.ID)
		}
	}
	if len(ids) == 0 {
		return fmt.Errorf("operator %s does not handle %s", op.Name, of)
	}
	for _, id := range f.handlers {
		if !slices.Contains(ids, id) {
			return fmt.Errorf("operator %s has no handler %s for %s; its handlers are %s", op.Name, id, of, strings.Join(ids, ", "))
		}
	}
	return nil
}
