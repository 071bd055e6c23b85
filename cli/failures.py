"""The exit codes of the command line, and the failure that carries one."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Listed in docs/cli.md. Scripts depend on these numbers."""

    DONE = 0
    REFUSED = 1  # the server refused, or the object does not exist
    USAGE = 2  # wrong arguments, or a confirmation is missing
    UNFINISHED = 3  # ended otherwise, or waits for a person: halted plan, failed nodes, approval
    TIMEOUT = 4  # --timeout passed
    NO_ANSWER = 5  # no connection, certificate, or server unavailable; a retry may help
    SIGNED_OUT = 6  # no token, or the server does not accept it


class Failure(Exception):
    """The end of a command. Its text is one sentence for a person, with a way out."""

    def __init__(self, sentence: str, code: ExitCode = ExitCode.REFUSED, *, error: str = "") -> None:
        super().__init__(sentence)
        self.code = code
        self.error = error  # the server's code of RFC 8628, if it sent one
