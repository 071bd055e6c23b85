import socket

from demo.ports import LOOPBACK, free_port


def test_the_wanted_port_is_given_when_it_is_free():
    wanted = free_port()

    assert free_port(wanted) == wanted


def test_another_port_is_given_when_the_wanted_one_is_taken():
    with socket.create_server((LOOPBACK, 0)) as server:
        taken = server.getsockname()[1]

        assert free_port(taken) not in {0, taken}
