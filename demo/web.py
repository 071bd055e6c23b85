"""`python -m demo.web PORT`: the web process at a port that it takes itself, so that nobody takes it in between."""

import argparse
import json
import socket

import uvicorn

from demo.numbers import whole
from demo.ports import LOOPBACK

MOST_PORT = 65535


def main() -> None:
    """Say where it listens as the first line, and serve pages, REST and WebSockets until told to stop."""
    words = argparse.ArgumentParser(prog="python -m demo.web", description=__doc__)
    words.add_argument("port", type=whole(0, MOST_PORT), metavar="PORT", help="0: any")
    words.add_argument("--or-another", action="store_true", help="where that one is taken")
    asked = words.parse_args()
    with listening(asked.port, or_another=asked.or_another) as listener:
        print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
        served = uvicorn.Config(
            "config.asgi:application",
            access_log=False,
            http="config.server:BoundedHttp",
            ws="config.server:AnsweredWebSocket",
            proxy_headers=False,  # uvicorn believes X-Forwarded-For from loopback, and we only QUARTERDECK_PROXIES
            lifespan="off",
            timeout_graceful_shutdown=1,  # for open sockets, in seconds
        )
        uvicorn.Server(served).run(sockets=[listener])


def listening(port: int, *, or_another: bool) -> socket.socket:
    """Return a socket that listens at the port; where that one is taken, at any other.

    :raises OSError: it is taken, and no other will do.
    """
    try:
        return socket.create_server((LOOPBACK, port), backlog=2048)
    except OSError:
        if not or_another:
            raise
    return socket.create_server((LOOPBACK, 0), backlog=2048)


if __name__ == "__main__":
    main()
