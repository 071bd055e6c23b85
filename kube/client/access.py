"""What we may do, as the API server itself decides it. Asking changes nothing, and takes no right of its own.

Whoever is authenticated may ask it of himself: the ClusterRole system:basic-user, which every cluster has
(kubernetes.io/docs/reference/access-authn-authz/rbac, "API discovery roles").
"""

from typing import Any, NamedTuple

from kube.client.connection import Connection
from kube.client.decoder import decode_by, decoder
from kube.resources import Resource
from kube.structs.access import AccessReview, AccessStatus

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEW = decoder(AccessReview)


class AccessAsked(NamedTuple):
    """A verb on a kind: in one namespace or in the whole cluster, on one object or on any."""

    verb: str
    resource: Resource[Any]
    namespace: str = ""
    name: str = ""


def may(connection: Connection, access: AccessAsked) -> AccessStatus:
    """:raises ClusterError: when there is no answer, or one without a status"""
    wanted = {
        "verb": access.verb,
        "group": access.resource.group,
        "resource": access.resource.plural,
        "namespace": access.namespace,
        "name": access.name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in wanted.items() if value}},
    }
    return decode_by(REVIEW, connection.request("POST", REVIEWS, body=review)).status
