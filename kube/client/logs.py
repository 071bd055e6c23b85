"""The last lines of a container's log."""

from urllib.parse import quote

from kube.client.connection import Connection
from kube.client.errors import Refused

TAIL_LINES = 200  # a crash of Go's is told before the stacks of all its goroutines
# A limit cuts off the end, which is what we are after: so it is far above what those lines may be.
AT_MOST_BYTES = 1024 * 1024
READ_S = 5.0


def last_lines(connection: Connection, namespace: str, pod: str, container: str, *, crashed: bool) -> list[str]:
    """Those of the container that crashed, where the node still has them; else those of the one that runs.

    `container`: blank: the only one of its pod.

    :raises Refused: when neither has a log
    """
    if crashed:
        try:
            return _lines(connection, namespace, pod, container, previous=True)
        except Refused:  # 400: it has not run before, or its log is gone
            pass  # the one that runs now may tell the same
    return _lines(connection, namespace, pod, container, previous=False)


def _lines(connection: Connection, namespace: str, pod: str, container: str, *, previous: bool) -> list[str]:
    query: dict[str, str | int] = {"tailLines": TAIL_LINES, "limitBytes": AT_MOST_BYTES}
    if container:
        query["container"] = container
    if previous:
        query["previous"] = "true"
    path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/log"
    answer = connection.get(path, query, read_s=READ_S)
    return connection.without_secrets(answer).decode(errors="replace").splitlines()
