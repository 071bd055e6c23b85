import pytest

from demo.web import listening


def test_who_comes_second_gets_another_port_however_close_behind():
    with listening(0, or_another=True) as first:
        taken = first.getsockname()[1]

        with listening(taken, or_another=True) as second:
            assert second.getsockname()[1] not in {0, taken}


def test_who_was_somewhere_before_is_nowhere_else():
    with listening(0, or_another=False) as first, pytest.raises(OSError, match="in use"):
        listening(first.getsockname()[1], or_another=False)
