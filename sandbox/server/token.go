// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// token says where the next page of a list begins. Its encoded form is the API server's.
type token struct {
	API string `json:"v"`
	// Version is that of the whole list; -1 means the current one.
	Version int64 `json:"rv"`
	// Start is the path of the last object of the page before, and a zero byte.
	Start string `json:"start"`
}

// tokenAPI is the version of the form of a token.
const tokenAPI = "meta.k8s.io/v1"

// tokenAfter returns the token for the rest of a list of a namespace; an empty one means all.
func tokenAfter(row *store.Row, namespace string, version int64) token {
	return token{API: tokenAPI, Version: version, Start: pathOf(row, namespace) + "\x00"}
}

// pathOf returns the path of an object below its resource, or below its namespace if the list is of that.
func pathOf(row *store.Row, namespace string) string {
	if row.Namespace == namespace {
		return "/" + row.Name
	}
	return "/" + row.Namespace + "/" + row.Name
}

// precedes reports whether an object of a list comes after the pages that have been sent.
func (t token) precedes(row *store.Row, namespace string) bool {
	return pathOf(row, namespace)[1:] >= strings.TrimPrefix(t.Start, "/")
}

func (t token) encode() string {
	data, err := json.Marshal(t)
	if err != nil {
		panic("server: " + err.Error()) // not reached: it is a plain struct
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// errToken is the error of a token that no server has made.
var errToken = errors.New("continue key is not valid")

func decodeToken(text string) (token, error) {
	var out token
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	switch start := "/" + strings.TrimPrefix(out.Start, "/"); {
	case err != nil:
		return out, fmt.Errorf("%w: %w", errToken, err)
	case out.API != tokenAPI:
		return out, fmt.Errorf("%w: server does not recognize this encoded version %s", errToken, out.API)
	case out.Version == 0:
		return out, fmt.Errorf("%w: incorrect encoded start resourceVersion (version meta.k8s.io/v1)", errToken)
	case out.Start == "":
		return out, fmt.Errorf("%w: encoded start key empty (version meta.k8s.io/v1)", errToken)
	case path.Clean(start) != start:
		return out, fmt.Errorf("%w: %s", errToken, out.Start)
	}
	return out, nil
}

// expiredToken returns the error for a token whose version is too old. It has another token for the rest as it is now.
func expiredToken(from token) error {
	out := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve " +
		"the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that " +
		"were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	from.Version = -1
	out.ErrStatus.Continue = from.encode()
	return out
}
