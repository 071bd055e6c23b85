import socket

from simulator.wire.server import bound


def test_an_answer_does_not_wait_for_its_headers_to_be_acknowledged():
    with bound("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()

        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
