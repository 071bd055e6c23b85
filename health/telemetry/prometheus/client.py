"""HTTP client for Prometheus: each answer is bounded in time and size, and each failure is one sentence.

It follows no redirect and uses no proxy of the environment, so that passwords and tokens reach only the configured
address. Sent secrets are removed from everything that comes back (Z39).
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import httpx

from health.telemetry.prometheus.answers import AnswerLost, LabelledSample, Unusable, refusal_in, vector
from health.telemetry.prometheus.hosts import AllowedNetworks, check_host
from wording.numbers import count
from wording.sent_secrets import SentSecrets

CONNECT_S = 3.0
READ_S = 5.0  # between two pieces of an answer
ANSWER_S = 15.0  # for the whole of one
ANSWER_BYTES = 64 << 20  # 40,000 devices with all that tells which they are: 24 MB
BEGINNING_BYTES = 16 << 10  # of an answer that is only shown
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol)  # raised before a request is sent
LONGEST_PLACE = 200  # characters of an address that is not ours
HELP = {
    401: "Not authenticated (401): the user name, password or token is wrong or missing.",
    403: "Forbidden (403): the user lacks the right to query, or a proxy requires another sign-in.",
    404: "No Prometheus at this address (404). If the server has a path prefix, add it to the address.",
    405: "Queries are not allowed (405): this is not a Prometheus, or a proxy forbids queries.",
    429: "Too many requests (429): the server limits the rate of queries.",
    502: "A proxy cannot reach the server (502).",
    503: "The server is unavailable (503): it is starting, or the query timed out.",
    504: "A proxy timed out while it waited for the server (504).",
}

# What is wrong with a certificate whoever signed it, by OpenSSL's words for it (crypto/x509/x509_txt.c; Python says the
# name that does not match after "mismatch, certificate is not valid for").
NOT_BY_A_CA = {
    "certificate has expired": "The server's certificate has expired. Its owner must renew it.",
    "certificate is not yet valid": (
        "The server's certificate is not valid yet. Check the clocks of the server and of this host."
    ),
    "mismatch": "The server's certificate is for another host name. Use a name of the certificate in the address.",
}
UNREADABLE_CA = (
    "The CA file cannot be read. It must be in the folder QUARTERDECK_SECRETS_DIR, with PEM certificates, at "
    "most 1 MiB."
)
UNUSABLE_CERTIFICATE = (
    "The client certificate cannot be used. Its file must have certificate and key as PEM, unencrypted."
)
NO_TLS = ("wrong version number", "record layer failure")  # by OpenSSL before 3.2, and from then on (urllib3 #3271)


@dataclass(frozen=True)
class Address:
    """The address and credentials. Secrets exist here for one round only, and in no row."""

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    ca: str = field(default="", repr=False)  # PEM certificates; blank: whom this machine trusts
    may_be_loopback: bool = False
    private_in: AllowedNetworks | None = None  # the private networks that it may be in; None: any
    proxy: str = field(default="", repr=False)  # the HTTP proxy, which looks the name up; blank: none
    path_secrets: tuple[str, ...] = field(default=(), repr=False)  # secrets that the path of a request has


@dataclass(frozen=True)
class PostAnswer:
    """The answer to one request. The secrets that were sent are cut from its body."""

    status: int
    headers: httpx.Headers
    body: str  # first part of the body; empty: compressed, or too late


@dataclass(frozen=True)
class Bounds:
    """The limits of one answer. A worker may wait longer than a user."""

    connect_s: float
    read_s: float  # between two pieces of it
    answer_s: float  # for the whole of it
    answer_bytes: int


class Client:
    """The client of one round. Close it, or use it as a context manager."""

    def __init__(self, address: Address, bounds: Bounds | None = None) -> None:
        """Creates a client.

        :raises Unusable: when its CA cannot be read, or its address is forbidden
        """
        self._address = address
        self._bounds = bounds or Bounds(CONNECT_S, READ_S, ANSWER_S, ANSWER_BYTES)
        basic = f"{address.user}:{address.password}"
        self._sent = SentSecrets(address.token, address.password, basic, address.proxy, *address.path_secrets)
        places = check_host(
            address.url,
            may_be_loopback=address.may_be_loopback,
            private_in=address.private_in,
            within_s=self._bounds.answer_s,
            proxy_looks_up=bool(address.proxy),
        )
        url = _parsed(address.url)
        self._roots = [str(url.copy_with(host=place)).rstrip("/") for place in places]  # an address each, no name
        # Who is asked at an address is still called by name: www.python-httpx.org/advanced/extensions, "sni_hostname".
        host = url.raw_host.decode()
        self._extensions: dict[str, Any] = {"trace": self._note_socket}
        self._extensions |= {} if host in places else {"sni_hostname": host}
        headers = {"Host": url.netloc.decode(), "User-Agent": "quarterdeck", "Accept": "application/json"}
        headers["Accept-Encoding"] = "identity"
        if address.token:
            headers["Authorization"] = f"Bearer {address.token}"
        self._http = httpx.Client(
            auth=httpx.BasicAuth(address.user, address.password) if address.user else None,
            headers=headers,
            timeout=httpx.Timeout(self._bounds.read_s, connect=self._bounds.connect_s),
            verify=trust(address.ca),
            proxy=address.proxy or None,
            follow_redirects=False,
            trust_env=False,
        )
        self._socket: socket.socket | None = None  # of the connection that is open
        self._is_cut = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def query(self, expression: str, *, at: float | None = None) -> list[LabelledSample]:
        """Returns the series of an instant query. `at` is in seconds since the epoch; None means now.

        :raises Unusable: with the reason and the action
        """
        form = {"query": expression} if at is None else {"query": expression, "time": f"{at:.3f}"}
        return vector(self.ask("/api/v1/query", form))

    def ask(self, path: str, form: Mapping[str, str]) -> bytes:
        """Returns the body of an answer.

        :raises Unusable: with the reason and the action
        """
        return self._asked(lambda root: self._whole("POST", root + path, data=dict(form)))

    def get(self, path: str, headers: Mapping[str, str]) -> bytes:
        """Returns the body of an answer to a GET. Raises as `ask` does."""
        return self._asked(lambda root: self._whole("GET", root + path, headers=dict(headers)))

    def delete(self, path: str, headers: Mapping[str, str]) -> None:
        """Sends a DELETE. Raises as `ask` does."""
        self._asked(lambda root: self._whole("DELETE", root + path, headers=dict(headers)))

    def _asked(self, send: Callable[[str], tuple[httpx.Response, bytes]]) -> bytes:
        with self._reached(), self._in_time():
            response, body = self._first_of(send)
        if self._is_cut:  # where it gave no length, a body that is cut looks like a whole one
            raise Unusable(f"The answer took longer than {self._bounds.answer_s:.0f} s.")
        body = self._sent.cut(body)
        self._refuse_redirect(response)
        if response.is_error:
            said = refusal_in(body)
            helped = HELP.get(response.status_code, f"It answers {response.status_code}.")
            raise Unusable(f"{helped} Message of the server: {said}" if said else helped)
        return body

    def post(self, path: str, content: bytes, headers: Mapping[str, str]) -> PostAnswer:
        """Sends a body and returns the answer, whatever its status. What follows the status is read as far as it comes.

        :raises Unusable: when no status arrives in time, or it is a redirect
        """
        with self._reached(), self._in_time():
            response, body = self._first_of(lambda root: self._beginning(root + path, content, headers))
        self._refuse_redirect(response)
        return PostAnswer(response.status_code, response.headers, self._sent.cut(body).decode(errors="replace"))

    def _beginning(self, url: str, content: bytes, headers: Mapping[str, str]) -> tuple[httpx.Response, bytes]:
        extensions = self._extensions
        with self._http.stream("POST", url, content=content, headers=dict(headers), extensions=extensions) as response:
            body = b""
            if response.headers.get("content-encoding", "identity") == "identity":
                with suppress(httpx.HTTPError):  # the request arrived; only the answer's text is missing
                    for piece in response.iter_raw(BEGINNING_BYTES):
                        body = piece
                        break
            return response, body

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Puts each failure of the connection into one sentence.

        :raises Unusable: with the reason and the action
        """
        try:
            yield
        except httpx.HTTPError as error:
            if self._is_cut:
                raise AnswerLost(f"The answer took longer than {self._bounds.answer_s:.0f} s.") from error
            words = self._sent.cut_text(str(error))[:200] or type(error).__name__
            kind = Unusable if isinstance(error, NOT_SENT) else AnswerLost
            raise kind(_unreached(error, words, self._bounds, has_ca=bool(self._address.ca))) from error
        except UnicodeError as error:
            raise Unusable(f"The address cannot be used: {error}") from error

    def _refuse_redirect(self, response: httpx.Response) -> None:
        if response.is_redirect:
            to = _place(self._sent.cut_text(response.headers.get("location", "")))
            raise Unusable(f"The server redirects to {to or 'nowhere'}. Redirects are not followed: use that address.")

    def _first_of(self, send: Callable[[str], tuple[httpx.Response, bytes]]) -> tuple[httpx.Response, bytes]:
        """Sends to each of its addresses until one accepts the connection; that one is then first.

        :raises httpx.HTTPError: with the error of the last address
        :raises Unusable: as `send`
        """
        for _ in self._roots[1:]:
            try:
                return send(self._roots[0])
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if self._is_cut:
                    raise
                self._roots.append(self._roots.pop(0))
        return send(self._roots[0])

    def _whole(self, method: str, url: str, **given: Any) -> tuple[httpx.Response, bytes]:
        """Returns the response and its body.

        :raises Unusable: when it is too large, too slow, or compressed
        """
        with self._http.stream(method, url, **given, extensions=self._extensions) as response:
            _check_encoding(self._sent.cut_text(response.headers.get("content-encoding", "identity")))
            return response, b"".join(_pieces(response, self._bounds))

    def _note_socket(self, event: str, told: Mapping[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = told["return_value"].get_extra_info("socket")

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Closes the connection when the time for an answer is over.

        HTTP timeouts apply between two pieces, so a server that sends one byte a second would never reach them.
        """
        self._is_cut = False
        timer = Timer(self._bounds.answer_s, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _cut(self) -> None:
        self._is_cut = True
        if self._socket is not None:
            with suppress(OSError):  # already closed, so nothing waits for it
                self._socket.shutdown(socket.SHUT_RDWR)


def _place(location: str) -> str:
    """Returns the target of a redirect without the parts that may be secret: user, query and fragment."""
    try:
        to = urlsplit(location)
        return urlunsplit((to.scheme, to.netloc.rpartition("@")[2], to.path, "", ""))[:LONGEST_PLACE]
    except ValueError:  # as of brackets that hold no address
        return "an invalid address"


def _parsed(url: str) -> httpx.URL:
    """Returns the parsed URL.

    :raises Unusable: when it is invalid
    """
    try:
        return httpx.URL(url)
    except (UnicodeError, httpx.InvalidURL) as error:
        raise Unusable(f"The address cannot be used: {error}") from error


def _check_encoding(packed: str) -> None:
    """Checks that the answer is not compressed, since a small one may expand beyond the limit.

    :raises Unusable: when it is
    """
    if packed != "identity":
        raise Unusable(
            f"The answer is compressed ({packed[:40]}) without a request for compression. Check for a proxy."
        )


def _pieces(response: httpx.Response, bounds: Bounds) -> Iterator[bytes]:
    """Yields the pieces of the body.

    :raises Unusable: when it is too large, or too slow
    """
    read, until = 0, time.monotonic() + bounds.answer_s
    for piece in response.iter_raw():
        read += len(piece)
        if read > bounds.answer_bytes:
            raise Unusable(
                f"The answer is larger than {bounds.answer_bytes >> 20} MiB and was not read completely. Limit "
                "the series by label matchers of the cluster."
            )
        if time.monotonic() > until:
            raise Unusable(
                f"The answer took longer than {bounds.answer_s:.0f} s. {count(read, 'byte')} arrived in that time."
            )
        yield piece


def _unreached(error: httpx.HTTPError, words: str, bounds: Bounds, *, has_ca: bool) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in words:
        return f"{why_not_trusted(words, has_ca=has_ca)} {words}"
    if any(said in words for said in NO_TLS):
        return f"The server does not speak TLS. Check whether the address must begin with http://. {words}"
    if isinstance(error, httpx.ConnectTimeout):
        return f"The server does not answer: no connection within {bounds.connect_s:.0f} s."
    if isinstance(error, httpx.ReadTimeout):
        return f"The server accepted the query and sent nothing for {bounds.read_s:.0f} s."
    if isinstance(error, httpx.ConnectError):
        return f"The server cannot be reached: {words}"
    if isinstance(error, httpx.RemoteProtocolError):
        return f"The server's answer is not valid HTTP: {words}"
    return f"The connection to the server broke: {words}"


def why_not_trusted(words: str, *, has_ca: bool) -> str:
    if said := next((sentence for part, sentence in NOT_BY_A_CA.items() if part in words), ""):
        return said
    if has_ca:
        return "The given CA did not sign the server's certificate. Name the CA that signed it."
    return "No CA that this host trusts signed the server's certificate. Name its CA."


@cache
def _trusted_by_all() -> ssl.SSLContext:
    """Loads the public CAs once per process, since that takes longer than a round's answers."""
    return httpx.create_ssl_context(trust_env=False)


def trust(ca: str, *, certificate: Path | None = None) -> ssl.SSLContext:
    """Returns a context that trusts these certificates. `certificate`: a PEM file with a client's certificate and key.

    :raises Unusable: when they are not certificates
    """
    if not ca and certificate is None:
        return _trusted_by_all()
    try:
        # A context of its own: the shared one would show the certificate to every server.
        context = ssl.create_default_context(cadata=ca) if ca else httpx.create_ssl_context(trust_env=False)
    except (ssl.SSLError, ValueError) as error:
        raise Unusable(UNREADABLE_CA) from error
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, password="")  # no prompt for an encrypted key
        except (OSError, ValueError) as error:  # TLS errors are OSErrors
            raise Unusable(UNUSABLE_CERTIFICATE) from error
    return context
