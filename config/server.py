"""Uvicorn's protocols, which answer a request that is too long and end its connection.

Uvicorn reads a request line without end, and gives no answer to a WebSocket handshake that its WebSocket library
refuses: the connection stays open for as long as whoever sent it likes. The application hears of neither, so this is
for whoever starts the server: `uvicorn --http config.server:BoundedHttp --ws config.server:AnsweredWebSocket`.
"""

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

LONGEST_TARGET = 8_000  # octets of path and query: what RFC 9110, 4.1, asks a server to take at the least
TOO_LONG = STATUS_LINE[414] + b"content-length: 0\r\nconnection: close\r\n\r\n"


class TargetTooLong(ValueError):
    """The request line has a path and query of more than LONGEST_TARGET octets."""


class BoundedHttp(HttpToolsProtocol):
    url = b""  # as far as it has come

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > LONGEST_TARGET:
            raise TargetTooLong  # the parser ends there, and whoever fed it sends the answer to what it cannot read

    def send_400_response(self, msg: str) -> None:
        if len(self.url) <= LONGEST_TARGET:
            super().send_400_response(msg)
            return
        self.transport.write(TOO_LONG)
        self.transport.close()


class AnsweredWebSocket(WebSocketsSansIOProtocol):
    def data_received(self, data: bytes) -> None:
        """The first data is a whole handshake: where it opened nothing, what refuses it (as 431) is sent."""
        super().data_received(data)
        if not self.handshake_initiated:
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()
