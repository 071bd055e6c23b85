"""Who only listens holds no database connection: a process has fewer of them than it may watch clusters."""

from django.db import connection


def give_back() -> None:
    """To PostgreSQL's pool; the next query takes one. SQLite's is a file that nobody else waits for."""
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        connection.close()
