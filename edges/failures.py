"""What the page says of a round that failed: a database that is out is no bug of ours."""

from django.db import InterfaceError, OperationalError


def failure_sentence(failure: Exception) -> str:
    """Returns one sentence. The worker's log has the stack."""
    if isinstance(failure, OperationalError | InterfaceError):
        return "The database is away, full or locked: this round wrote nothing, and the next one tries again."
    return f"Quarterdeck itself failed: {type(failure).__name__}."
