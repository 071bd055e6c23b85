"""Stack traces of all threads on stderr when a signal kills the process."""

import faulthandler


def dump_stacks_on_crash() -> None:
    if not faulthandler.is_enabled():  # tests and the environment may have enabled it
        faulthandler.enable()
