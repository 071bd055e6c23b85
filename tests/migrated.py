"""Databases that are migrated once for all processes of a run: migrations take seconds of CPU."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from demo import tables
from demo.settings import ROOT

KEPT = ROOT / ".data" / "test-tables"  # one SQLite database, of the code as it is


def put_migrated(database: Path) -> None:
    """Copies an SQLite database with the tables of this code and without people to that path."""
    tables.put(database, lambda: migrate(f"sqlite:///{database}"), kept_in=KEPT)


def migrated_template(url: str, name: str = "migrated") -> str:
    """Returns the name of a migrated database of that server. The first process makes it, the others wait."""
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("SELECT pg_advisory_lock(1)")
        if not server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            server.execute("CREATE DATABASE migrating")
            migrate(urlsplit(url)._replace(path="/migrating").geturl())
            server.execute(f"ALTER DATABASE migrating RENAME TO {name}")
    return name


def migrate(url: str, *command: str) -> None:
    """Makes the tables of an empty database, by `tests.quick_migration` unless another command is given."""
    command = (sys.executable, *(command or ("-m", "tests.quick_migration")))
    environment = {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings.test"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
