"""Single requests to a cluster outside of a round."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

from kube.client.connection import Connection, connect
from kube.client.decoder import decode_by, decoder
from kube.client.errors import Refused
from kube.client.queries import kube_system_uid
from kube.resources import Resource
from kube.structs.cluster_objects import AccessReview, AccessStatus


@contextmanager
def reach(kubeconfig_path: str, context: str, *, uid: str) -> Iterator[Connection]:
    """Connects to the cluster of this UID.

    :raises Refused: when another cluster answers at the address
    :raises ClusterError: when no server answers
    """
    connection = connect(kubeconfig_path, context)
    try:
        if kube_system_uid(connection) != uid:
            raise Refused("Another cluster answers at this address.")
        yield connection
    finally:
        connection.close()


TAIL_LINES = 200  # a crash of Go prints the reason before the stacks of all goroutines
# A byte limit would cut off the needed end, so it is far above the size of these lines.
AT_MOST_BYTES = 1024 * 1024
# `limitBytes` cuts the end of the lines that `tailLines` names: of long lines fewer are asked for, down to the last.
FEWER_LINES = (TAIL_LINES, 10, 1)
READ_S = 5.0


def last_lines(connection: Connection, namespace: str, pod: str, container: str, *, crashed: bool) -> list[str]:
    """Returns the log of the crashed container if the node still has it, else of the running one.

    `container` blank: the only one of the pod.

    :raises Refused: when neither has a log
    """
    if crashed:
        try:
            return _log_lines(connection, namespace, pod, container, previous=True)
        except Refused:  # 400: it has not run before, or its log is gone
            pass  # the one that runs now may tell the same
    return _log_lines(connection, namespace, pod, container, previous=False)


def _log_lines(connection: Connection, namespace: str, pod: str, container: str, *, previous: bool) -> list[str]:
    query: dict[str, str | int] = {"limitBytes": AT_MOST_BYTES}
    if container:
        query["container"] = container
    if previous:
        query["previous"] = "true"
    path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/log"
    answer = b""
    for lines in FEWER_LINES:
        answer = connection.get(path, query | {"tailLines": lines}, read_s=READ_S)
        if len(answer) < AT_MOST_BYTES:
            break
    return connection.without_secrets(answer).decode(errors="replace").splitlines()


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEW = decoder(AccessReview)


class AccessAsked(NamedTuple):
    """A verb on a kind: in one namespace or in the whole cluster, on one object or on any."""

    verb: str
    resource: Resource[Any]
    namespace: str = ""
    name: str = ""


def is_access_allowed(connection: Connection, access: AccessAsked) -> AccessStatus:
    """Returns whether the API server allows an access.

    :raises ClusterError: when there is no answer, or one without a status
    """
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
