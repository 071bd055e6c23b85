"""The connection to one cluster: configuration and authentication by the official client, raw bytes in and out.

The client's typed models are never built: they take fifty times as long to decode a list as `kube.structs`.
"""

import base64
import binascii
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
import urllib3
from kubernetes.client import ApiClient
from kubernetes.client.rest import tcp_keepalive_socket_options
from urllib3.exceptions import (
    ConnectTimeoutError,
    InsecureRequestWarning,
    LocationValueError,
    NameResolutionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)

from kube.client import kubeconfig
from kube.client.cluster_secrets import PROFILE, profile_path
from kube.client.errors import (
    Absent,
    BadCredentials,
    BadKubeconfig,
    ClusterError,
    NotAnApiServer,
    Unreachable,
    Unreadable,
    Untrusted,
    error_for,
)
from kube.client.kubeconfig import error_text
from kube.client.server_clock import ServerClock
from kube.credential_life import CredentialLife
from kube.credentials import lives_of, peer_certificate
from wording.sent_secrets import SentSecrets

CONNECT_S = 5.0
READ_S = 10.0
WHOLE_ANSWER_S = 300.0  # limits an answer that trickles in: each chunk restarts the read timeout
WHOLE_ANSWER_BYTES = 512 * 2**20
CHUNK_BYTES = 2**20
# A vanished peer is given up after 20 + 3 x 10 s, before the 90 s that a watch may be silent.
KEEP_ALIVE = {"idle": 20, "interval": 10, "count": 3}
FIELD_MANAGER = "quarterdeck"
REFUSAL_BYTES = 64 * 1024
TOKENS_KNOWN = 4  # an answer may quote a token from before the last renewal

ENCODER = msgspec.json.Encoder()
Query = Mapping[str, str | int]
E = TypeVar("E", bound=ClusterError)


@lru_cache(maxsize=1)
def user_agent() -> str:
    try:
        return f"quarterdeck/{version('quarterdeck')}"
    except PackageNotFoundError:  # run from a checkout
        return "quarterdeck/0.1.0"


def connect(kubeconfig_path: str, context: str) -> "Connection":
    """Prepares the connection to a cluster without sending anything to it. No path: in-cluster.

    :raises BadKubeconfig: when the file or the context does not exist
    """
    if context.startswith(PROFILE):
        settings = kubeconfig.load_profile(_at_home(profile_path(context)), Path(kubeconfig_path))
    else:
        settings = kubeconfig.load(kubeconfig_path, context)
    settings.connection_pool_maxsize = 64  # a watch per kind, and requests beside them
    settings.socket_options = tcp_keepalive_socket_options(**KEEP_ALIVE)
    if not settings.verify_ssl:  # `add_cluster` and `doctor` name it once, and not each request on stderr
        urllib3.disable_warnings(InsecureRequestWarning)
    try:
        return Connection(ApiClient(settings))
    except Exception as error:  # any class: a proxy's scheme, a CA file
        in_full = f"{kubeconfig_path or 'The service account of the pod'} cannot be used: {error_text(error)}"
        raise BadKubeconfig(
            "The kubeconfig cannot be used. `bin/manage doctor` shows the reason.", in_full=in_full
        ) from error


def _at_home(path: str) -> bytes:
    """Gets a ClusterProfile from the cluster in which Quarterdeck runs.

    :raises BadKubeconfig: also when that cluster does not answer: nothing is known of the other one
    """
    try:
        with closing(connect("", "")) as home:
            return home.get(path)
    except Absent as error:
        sentence = "The ClusterProfile does not exist in the cluster of Quarterdeck."
        raise BadKubeconfig(sentence, in_full=f"{sentence} {path}") from error
    except ClusterError as error:
        sentence = "The ClusterProfile cannot be read from the cluster of Quarterdeck"
        raise BadKubeconfig(
            f"{sentence}: {error}", in_full=f"{sentence}: {error.in_full}", retry_after_s=error.retry_after_s
        ) from error


class Connection:
    """A connection to one API server. Thread-safe: urllib3's pools are, and token renewal is locked."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._renewing = threading.Lock()
        self.server = str(client.configuration.host)
        self.is_verified = bool(client.configuration.verify_ssl)  # False: the kubeconfig turns verification off
        self.clock = ServerClock()
        self._peer: bytes | None = None  # the server's certificate
        self._sent: deque[tuple[str, SentSecrets]] = deque(maxlen=TOKENS_KNOWN)

    def get(
        self,
        path: str,
        query: Query | None = None,
        *,
        read_s: float = READ_S,
        whole_s: float = WHOLE_ANSWER_S,
        most_bytes: int = WHOLE_ANSWER_BYTES,
    ) -> bytes:
        """Sends a GET request.

        :raises ClusterError: of the class that the answer means
        """
        return self._read(self.open("GET", path, query, read_s=read_s), whole_s, most_bytes)

    def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        *,
        body: Any = None,
        content_type: str = "application/json",
        read_s: float = READ_S,
    ) -> bytes:
        """Sends one request without retries; only the caller knows whether it may be repeated."""
        response = self.open(method, path, query, body=body, content_type=content_type, read_s=read_s)
        return self._read(response, WHOLE_ANSWER_S, WHOLE_ANSWER_BYTES)

    def _read(self, response: urllib3.BaseHTTPResponse, whole_s: float, most_bytes: int) -> bytes:
        try:
            with translated(self.server):
                answer = b"".join(self._chunks(response, whole_s, most_bytes))
        except ClusterError:
            response.close()
            raise
        response.release_conn()
        return answer

    def open(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        *,
        body: Any = None,
        content_type: str = "application/json",
        read_s: float = READ_S,
    ) -> urllib3.BaseHTTPResponse:
        """Returns an answer whose body is still on the wire. The caller releases or closes it."""
        sent_at = time.time()
        with translated(self.server):
            response = self._client.rest_client.pool_manager.request(
                method,
                f"{self.server}{path}" + (f"?{urlencode(query)}" if query else ""),
                body=None if body is None else ENCODER.encode(body),
                headers=self._headers() | ({} if body is None else {"Content-Type": content_type}),
                timeout=urllib3.Timeout(connect=CONNECT_S, read=read_s),
                preload_content=False,
                retries=False,
                redirect=False,
            )
            self.clock.note(response.headers.get("Date"), sent_at=sent_at, answered_at=time.time())
            if self._peer is None:
                self._peer = peer_certificate(response)
            if response.status < 300:
                return response
            refusal = error_for(
                response.status,
                self.without_secrets(response.read(REFUSAL_BYTES)),
                retry_after=response.headers.get("Retry-After"),
            )
        response.close()
        raise refusal

    def credential_lives(self) -> list[CredentialLife]:
        """Returns the lives of the certificates and of the token of the last request, as far as they are known."""
        sent = self._sent[-1][0] if self._sent else ""
        file = self._client.configuration.cert_file or ""
        return list(lives_of(certificate_file=file, authorization=sent, peer=self._peer))

    def without_secrets(self, answer: bytes) -> bytes:
        """Removes our credentials from a text that the API server or a pod wrote (Z39)."""
        for _, sent in tuple(self._sent):
            answer = sent.cut(answer)
        return answer

    def close(self) -> None:
        self._client.rest_client.close()

    def _chunks(self, response: urllib3.BaseHTTPResponse, whole_s: float, most_bytes: int) -> Iterator[bytes]:
        until, size = time.monotonic() + whole_s, 0
        while chunk := response.read1(CHUNK_BYTES):
            yield chunk
            size += len(chunk)
            if time.monotonic() > until:
                raise server_error(self.server, Unreachable, f"took longer than {whole_s:.0f} s for one answer.")
            if size > most_bytes:
                raise server_error(self.server, Unreadable, f"sent more than {most_bytes // 2**20} MiB as one answer.")

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": user_agent()}
        with self._renewing:
            try:
                self._client.update_params_for_auth(headers, [], ["BearerToken"], "", "", None)
            except Exception as error:  # the plugin named in the kubeconfig printed something else than credentials
                in_full = f"No credentials for {self.server}: {error_text(error)}"
                raise BadCredentials(
                    "The worker has no credentials. `bin/manage doctor` shows the reason.", in_full=in_full
                ) from error
            authorization = headers.get("authorization", "")
            if authorization not in {known for known, _ in self._sent}:
                self._sent.append((authorization, SentSecrets(*_secrets_in(authorization))))
        return headers


def _secrets_in(authorization: str) -> list[str]:
    """Returns the token of a request's header, or its user and password."""
    scheme, _, credentials = authorization.partition(" ")
    if scheme.lower() != "basic":
        return [credentials]
    try:
        pair = base64.b64decode(credentials, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return [credentials]
    return [pair, pair.partition(":")[2]]


@contextmanager
def translated(server: str) -> Iterator[None]:
    """Turns any exception of the transport into ours. A token with a line break, for example, raises ValueError."""
    try:
        yield
    except ClusterError:
        raise
    except Exception as error:
        raise _cluster_error_for(server, error) from error


def server_error(server: str, kind: type[E], what: str, *, in_full: str = "") -> E:
    """Builds an error such as "The API server did not answer in time." The address stays out of the sentence, since
    people with access to only one pool read it.
    """
    return kind(f"The API server {what}", in_full=in_full or f"{server} {what}")


def _cluster_error_for(server: str, error: Exception) -> ClusterError:
    if isinstance(error, SSLError):
        if "WRONG_VERSION_NUMBER" in str(error):
            return server_error(
                server, NotAnApiServer, "does not speak TLS. Check whether the address must begin with http://."
            )
        in_full = f"The certificate of {server} is not trusted: {error}"
        return server_error(server, Untrusted, "has a certificate that is not trusted.", in_full=in_full)
    if isinstance(error, LocationValueError):
        return server_error(server, Unreachable, "has an invalid address.")
    if isinstance(error, NameResolutionError):
        return server_error(server, Unreachable, "has a name that cannot be resolved.")
    if "refused" in str(error).lower():
        return server_error(server, Unreachable, "refused the connection: nothing listens there.")
    if isinstance(error, ReadTimeoutError | ConnectTimeoutError) and "timed out" in str(error).lower():
        return server_error(server, Unreachable, "did not answer in time.")
    if isinstance(error, ProtocolError):
        return server_error(server, Unreachable, "closed the connection.")
    in_full = f"{server} did not answer: {str(error)[:300]}"
    return server_error(server, Unreachable, f"did not answer ({type(error).__name__}).", in_full=in_full)
