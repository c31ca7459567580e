// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import "strings"

// workflowFile is the path of the workflow in a repository. GitHub reads workflows from this folder.
const workflowFile = ".github/workflows/operator.yaml"

// workflow is a GitHub workflow for an operator whose folder is the root of a repository.
const workflow = `# Checks the operator NAME in each pull request.
name: operator
on: [pull_request]
permissions: {contents: read}
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-go@v6
        with: {go-version: stable}
      - run: go install github.com/handwerk-dev/handwerk/cmd/operator@latest
      - run: operator validate --config operator.yaml
      - run: operator test .

  # Comments what the changed operator would do to the objects of a cluster. This job is skipped unless the repository has
  # the variable PLAN with the value "true", and the secret PLAN_KUBECONFIG: a kubeconfig with read access to the
  # resources that operator rbac prints. Only branches of the repository itself get the secret.
  plan:
    if: vars.PLAN == 'true' && github.event.pull_request.head.repo.full_name == github.repository
    runs-on: ubuntu-latest
    permissions: {contents: read, pull-requests: write}
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-go@v6
        with: {go-version: stable}
      - run: go install github.com/handwerk-dev/handwerk/cmd/operator@latest
      - name: Plan
        env:
          PLAN_KUBECONFIG: ${{ secrets.PLAN_KUBECONFIG }}
          KUBECONFIG: ${{ runner.temp }}/kubeconfig
        run: |
          (umask 077; printf '%s' "$PLAN_KUBECONFIG" > "$KUBECONFIG")
          operator plan --config operator.yaml -o markdown > plan.md || test $? = 2 # 2: there are changes
      - name: Comment
        env:
          GH_TOKEN: ${{ github.token }}
          NUMBER: ${{ github.event.pull_request.number }}
        run: gh pr comment "$NUMBER" --body-file plan.md --edit-last --create-if-none
`

// workflowOf returns the workflow of an operator.
func workflowOf(name string) newFile {
	return newFile{workflowFile, strings.ReplaceAll(workflow, "NAME in each", name+" in each")}
}
