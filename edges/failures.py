"""The sentence a page shows about a failed round. A database outage is not shown as a bug of Quarterdeck."""

from django.db import InterfaceError, OperationalError


def failure_sentence(failure: Exception) -> str:
    """Returns one sentence; the worker's log has the stack trace."""
    if isinstance(failure, OperationalError | InterfaceError):
        return "The database is unreachable, full or locked. This round wrote nothing; the next round tries again."
    return f"Quarterdeck failed with a bug: {type(failure).__name__}."
