"""Which port a server of ours may have."""

import socket

LOOPBACK = "127.0.0.1"


def free_port(wanted: int = 0) -> int:
    """Return the wanted port, or any other when that one is taken."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            # As the servers do: a port whose last connections are still closing is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port on the loopback address")
