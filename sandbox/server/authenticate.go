// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
)

// authenticate answers a review of a token.
func (s *Server) authenticate(r Request, sent *unstructured.Unstructured) (any, error) {
	var review authenticationv1.TokenReview
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sent.Object, &review); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if review.Spec.Token == "" {
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	s.manageReview(r, sent)
	b, valid := s.bearerOf(review.Spec.Token)
	wanted := review.Spec.Audiences
	if len(wanted) == 0 {
		wanted = []string{issuer}
	}
	audiences := common(wanted, b.audiences)
	if !valid || len(audiences) == 0 {
		return answered(sent, &authenticationv1.TokenReviewStatus{Error: "invalid bearer token"})
	}
	return answered(sent, &authenticationv1.TokenReviewStatus{Authenticated: true, User: userInfo(b.user), Audiences: audiences})
}

// common returns the audiences that both lists have. A token without any is for everybody.
func common(wanted, has []string) []string {
	if len(has) == 0 {
		return wanted
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(audience string) bool { return !slices.Contains(has, audience) })
}

// userInfo returns a user in the form of the authentication group.
func userInfo(user rbac.User) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{
		Username: user.Name, UID: user.UID, Groups: user.Groups, Extra: extraOf[authenticationv1.ExtraValue](user),
	}
}
