"""Uvicorn protocols that answer an oversized request and close its connection.

Uvicorn reads a request line of any length, and does not answer a WebSocket handshake that its library refuses, so
the connection stays open. The application sees neither. Start the server with `uvicorn --http
config.server:BoundedHttp --ws config.server:AnsweredWebSocket`.
"""

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

LONGEST_TARGET = 8_000  # octets of path and query; RFC 9110, 4.1, recommends at least this limit
TOO_LONG = STATUS_LINE[414] + b"content-length: 0\r\nconnection: close\r\n\r\n"


class TargetTooLong(ValueError):
    """The request line has a path and query of more than LONGEST_TARGET octets."""


class BoundedHttp(HttpToolsProtocol):
    url = b""  # the part received so far

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > LONGEST_TARGET:
            raise TargetTooLong  # ends the parser; its caller sends the 400 answer

    def send_400_response(self, msg: str) -> None:
        if len(self.url) <= LONGEST_TARGET:
            super().send_400_response(msg)
            return
        self.transport.write(TOO_LONG)
        self.transport.close()


class AnsweredWebSocket(WebSocketsSansIOProtocol):
    def data_received(self, data: bytes) -> None:
        """Processes data. The first data is a complete handshake; if it was refused, sends the refusal (such as
        431)."""
        super().data_received(data)
        if not self.handshake_initiated:
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()
