# SPDX-FileCopyrightText: The Handwerk Authors
# SPDX-License-Identifier: Apache-2.0

# A generic controller image: one static binary. Mount another configuration, get another operator. hack/image builds the like
# without a container engine, and a test of it holds this file against what it builds.
ARG BUILDER=golang:1.26
ARG BASE=gcr.io/distroless/static:nonroot

FROM --platform=$BUILDPLATFORM ${BUILDER} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath -tags timetzdata -ldflags "-s -w" -o /operator ./cmd/operator

FROM ${BASE}
COPY --from=build /operator /operator
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/operator"]
CMD ["run", "--config", "/etc/handwerk"]
