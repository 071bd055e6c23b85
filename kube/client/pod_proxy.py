"""What a pod answers itself, asked through the API server. It needs the right to get `pods/proxy`."""

from urllib.parse import quote

from kube.client.connection import Connection

READ_S = 3.0
WHOLE_S = 8.0
AT_MOST_BYTES = 8 * 2**20  # 16 boards of 7 slices, with 60 series of 500 bytes each, are 3.4 MB


def metrics_of(connection: Connection, namespace: str, pod: str, port: int) -> str:
    """The text at /metrics. Named with its scheme, as kubectl does: without one the API server asks the same way.

    :raises ServerFailing: when nothing listens there: the API server then answers 503
    """
    path = f"/api/v1/namespaces/{quote(namespace)}/pods/http:{quote(pod)}:{port}/proxy/metrics"
    answer = connection.get(path, read_s=READ_S, whole_s=WHOLE_S, most_bytes=AT_MOST_BYTES)
    return connection.without_secrets(answer).decode(errors="replace")
