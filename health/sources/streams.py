"""Sends bytes over TLS to receivers outside of the fleet, within the same limits as requests."""

import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from health.sources.addresses import certificates_at
from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import trust, why_not_trusted
from health.telemetry.prometheus.hosts import check_host

CONNECT_S = 5.0
CONNECTED_S = 2 * CONNECT_S  # for all addresses of the receiver
SENT_S = 20.0  # for all of it, with the end of the connection
PIECE = 16 << 10  # bytes, the size of a TLS record
REFUSED = "The receiver ended the connection without an answer. It may want another client certificate."


def send_over_tls(host: str, port: int, content: bytes, *, ca_file: str = "", certificate: Path | None = None) -> None:
    """Sends all bytes and waits until the receiver ends the connection, which it does after the last byte.

    `certificate` is a PEM file with the client's certificate and key.

    :raises Unusable: when it is unknown whether all bytes arrived
    """
    places = check_receiver_at(host, port)
    context = trust(certificates_at(ca_file), certificate=certificate)
    try:
        with _connected(places, port) as raw:
            raw.settimeout(CONNECT_S)
            _send_all(TlsStream(raw, context, host), content)
    except ssl.SSLCertVerificationError as error:
        raise Unusable(f"{why_not_trusted(str(error), has_ca=bool(ca_file))} {error}") from error
    except TimeoutError as error:
        raise Unusable(f"The receiver did not take everything and end the connection within {SENT_S:.0f} s.") from error
    except OSError as error:  # TLS errors are, too
        raise Unusable(f"The connection to the receiver broke: {error}") from error


def check_receiver_at(host: str, port: int) -> list[str]:
    """Returns the allowed addresses of a receiver.

    :raises Unusable: with the reason
    """
    named = f"[{host}]" if ":" in host else host
    networks = settings.NOTIFICATION_NETWORKS
    return check_host(f"https://{named}:{port}", may_be_loopback=False, private_in=networks, within_s=CONNECT_S)


def _connected(places: list[str], port: int) -> socket.socket:
    """Returns a connection to the first address that accepts one, within `CONNECTED_S` for all of them.

    :raises Unusable: when none does
    """
    until, tried = time.monotonic() + CONNECTED_S, 0
    failure: OSError = TimeoutError("no address answered in time")
    for place in places:
        if (left := until - time.monotonic()) <= 0:
            break
        tried += 1
        try:
            return socket.create_connection((place, port), timeout=min(CONNECT_S, left))
        except OSError as error:
            failure = error
    missed = f" Only {tried} of {len(places)} addresses were tried." if tried < len(places) else ""
    raise Unusable(f"The receiver cannot be reached: {failure}.{missed}") from failure


class TlsStream:
    """TLS over a socket whose end tells an alert from an end that the receiver wanted.

    `SSLSocket.unwrap` cannot: a fatal alert counts as a received end there
    (https://github.com/openssl/openssl/blob/openssl-3.0/ssl/record/rec_layer_s3.c sets SSL_RECEIVED_SHUTDOWN for it).
    """

    def __init__(self, raw: socket.socket, context: ssl.SSLContext, host: str) -> None:
        self._raw, self._incoming, self._outgoing = raw, ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        try:
            while self._wants_more(self._tls.do_handshake):
                self._receive()
        finally:
            with suppress(OSError):  # an alert of ours; the reason why there is one is raised
                raw.sendall(self._outgoing.read())

    def send(self, piece: bytes, until: float) -> None:
        self._raw.settimeout(max(until - time.monotonic(), 0.01))
        self._tls.write(piece)
        self._raw.sendall(self._outgoing.read())

    def end(self, until: float) -> None:
        """Ends the stream and waits until the receiver ends it.

        :raises OSError: when it breaks, refuses us by an alert, or does not end it in time
        :raises Unusable: when it ends without any sign that it accepted the client
        """
        try:
            if self._read():  # read what has arrived before the stream ends
                raise Unusable(REFUSED)
            self._wants_more(self._tls.unwrap)
            while not self._read():
                self._raw.settimeout(max(until - time.monotonic(), 0.01))
                self._receive()
        except ssl.SSLEOFError as error:
            # The end without TLS's own end: after the last byte, or because the server refuses the client. In TLS 1.3
            # only a server that has accepted the client's certificate, or its lack, sends a session ticket.
            session = self._tls.session
            if self._tls.version() == "TLSv1.3" and not (session and session.has_ticket):
                raise Unusable(REFUSED) from error

    def _read(self) -> bool:
        """Reads what has arrived, and returns whether the receiver has ended the stream."""
        try:
            while not self._wants_more(lambda: self._tls.read(PIECE)):
                pass
        except ssl.SSLZeroReturnError:
            return True
        return False

    def _wants_more(self, step: Callable[[], object]) -> bool:
        """Takes a step of TLS, sends what it wrote, and returns whether it waits for bytes of the receiver."""
        try:
            step()
        except ssl.SSLWantReadError:
            wants = True
        else:
            wants = False
        self._raw.sendall(self._outgoing.read())
        return wants

    def _receive(self) -> None:
        if arrived := self._raw.recv(PIECE):
            self._incoming.write(arrived)
        else:
            self._incoming.write_eof()


def _send_all(stream: TlsStream, content: bytes) -> None:
    until = time.monotonic() + SENT_S
    for start in range(0, len(content), PIECE):
        stream.send(content[start : start + PIECE], until)
    stream.end(until)
