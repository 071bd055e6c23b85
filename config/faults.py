"""What a process says when it dies of a signal: where each of its threads was, in Python, on stderr."""

import faulthandler


def say_where() -> None:
    if not faulthandler.is_enabled():  # a test's own, or one that the environment asked for
        faulthandler.enable()
