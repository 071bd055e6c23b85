"""Return of idle database connections: a process has fewer of them than watched clusters."""

from django.db import connection


def give_back() -> None:
    """Returns the connection to PostgreSQL's pool; the next query takes one. SQLite needs no pool."""
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        connection.close()
