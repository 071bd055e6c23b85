"""What a command is given and no row can keep is refused in a sentence, and nothing is written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from people.models import AuditEntry
from tests import make

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
LONG, HUGE = "x" * 1001, "9" * 30
BACKTEST = ["rules_backtest", "gpu-hot", "--warn", "70"]
CLUSTER = ["add_cluster", "new", "--context", "c"]


@pytest.fixture
def clusters():
    make.a_cluster("mine")
    make.a_cluster("rebuilt", foreign_uid="new")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["accept_cluster", "rebuilt", "--reason", LONG], "At most 1,000 characters"),
        ([*BACKTEST, "--warn-after", HUGE], "from 0 to 86,400"),
        ([*BACKTEST, "--most", "-1"], "from 0 to 1,000,000"),
        (["add_cluster", "x" * 64, "--context", "c"], "At most 63 characters"),
        (["add_cluster", "new", "--context", LONG], "At most 253 characters"),
        ([*CLUSTER, "--kubeconfig", "x" * 300], "File name too long"),
        ([*CLUSTER, "--kubeconfig", "/x" * 600], "has at most 1,024 characters; this has 1,200"),
        ([*CLUSTER, "--kubeconfig", "~nobody-here/config"], "is unknown"),
        (["release_all", "mine", "--give-up-plans", LONG], "At most 1,000 characters"),
    ],
    ids=lambda given: " ".join(word[:20] for word in given) if isinstance(given, list) else "",
)
@pytest.mark.usefixtures("clusters")
def test_it_is_refused_in_a_sentence(words, says):
    with pytest.raises(CommandError, match=says):
        call_command(*words)

    assert not AuditEntry.objects.exists()


def test_what_is_no_text_is_refused_in_a_sentence():
    """A terminal that speaks Latin-1: Python reads such bytes as characters that no database takes."""
    command = [sys.executable, "manage.py", "stop", "--yes", "--reason", "Störung".encode("latin-1")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 1
    assert done.stderr == "Nothing was done: “St\\udcf6rung” is not UTF-8. Write it in a terminal that speaks UTF-8.\n"


@pytest.mark.nightly
def test_a_database_without_tables_is_said_to_be_one_that_is_to_be_migrated(tmp_path):
    """The first command of who did not read that `migrate` comes before it."""
    env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    env |= {"QUARTERDECK_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "config.settings.dev"}
    command = [sys.executable, "manage.py", "add_person", "ada"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 1
    assert done.stderr.endswith("of this version's migrations are not applied: run `bin/manage migrate`.\n")
    assert "Traceback" not in done.stderr
