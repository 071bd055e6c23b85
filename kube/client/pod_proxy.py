"""HTTP answers of a pod through the API server. Needs the permission to get `pods/proxy`."""

from urllib.parse import quote

from kube.client.connection import Connection

READ_S = 3.0
WHOLE_S = 8.0
AT_MOST_BYTES = 8 * 2**20  # 16 boards of 7 slices, with 60 series of 500 bytes each, take 3.4 MB


def metrics_of(connection: Connection, namespace: str, pod: str, port: int) -> str:
    """Returns the text at /metrics. The scheme is part of the name, as in kubectl; without it the API server also
    uses http.

    :raises ServerFailing: when nothing listens there: the API server then answers 503
    """
    path = f"/api/v1/namespaces/{quote(namespace)}/pods/http:{quote(pod)}:{port}/proxy/metrics"
    answer = connection.get(path, read_s=READ_S, whole_s=WHOLE_S, most_bytes=AT_MOST_BYTES)
    return connection.without_secrets(answer).decode(errors="replace")
