"""How long PostgreSQL lets each kind of process wait, and that a database's address may say otherwise."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.celery import is_worker

ROOT = Path(__file__).parents[2]
SHOW = (
    "import json; from config.settings import base; options = base.DATABASES['default']['OPTIONS'];"
    "print(json.dumps([options['options'], options.get('sslmode')]))"
)


def options_of(process: str, address: str = "postgres://me@host/name") -> list[str]:
    env = {**os.environ, "QUARTERDECK_PROCESS": process, "DATABASE_URL": address}
    done = subprocess.run([sys.executable, "-c", SHOW], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_request_waits_a_second_for_a_lock_and_a_migration_as_long_as_it_takes():
    assert "-c lock_timeout=1s" in options_of("web")[0]
    assert "-c idle_in_transaction_session_timeout=15s" in options_of("worker")[0]
    assert options_of("command")[0] == ""


def test_what_the_address_says_of_its_connections_is_kept_and_comes_last():
    said, sslmode = options_of("web", "postgres://me@host/name?sslmode=require&options=-c%20lock_timeout%3D9s")

    assert said.endswith("-c lock_timeout=9s")
    assert sslmode == "require"


@pytest.mark.parametrize(
    ("words", "is_one"),
    [
        (["/venv/bin/celery", "-A", "config", "worker", "-Q", "observe"], True),
        (["/venv/lib/celery/__main__.py", "-A", "config", "worker"], True),
        (["/venv/bin/celery", "-A", "config", "beat"], False),
        (["manage.py", "worker"], False),
    ],
)
def test_a_worker_is_told_by_its_command(words, is_one):
    assert is_worker(words) is is_one
