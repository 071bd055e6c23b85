"""What a command is given and no row can keep is refused in a sentence, and nothing is written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from fleet.models import Pool
from people.models import ApiToken, AuditEntry
from tests import make

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
LONG, HUGE = "x" * 1001, "9" * 30
POOL = ["add_pool", "mine", "p", "--selector", "a=b"]
TOKEN = ["issue_token", "ada", "--permission", "see"]
LIMIT = ["rule", "limit", "gpu-hot", "mine/h200", "--warn", "70"]
BACKTEST = ["rules_backtest", "gpu-hot", "--warn", "70"]
SOURCE = ["add_prometheus", "mine", "--anyway"]
CLUSTER = ["add_cluster", "new", "--context", "c"]


@pytest.fixture
def finding():
    mine = make.a_cluster("mine")
    make.a_pool(mine, "h200")
    make.a_cluster("rebuilt", foreign_uid="new")
    make.a_user("ada")
    return make.a_finding(mine, since=timezone.now(), opened_at=timezone.now())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["add_pool", "mine", "p", "--selector", " "], "selector: This field cannot be blank"),
        ([*POOL, "--price-per-gpu-hour", " "], "is no price"),
        ([*POOL, "--price-per-gpu-hour", "nan"], "is no price"),
        ([*POOL, "--price-per-gpu-hour", "inf"], "is no price"),
        ([*POOL, "--price-per-gpu-hour", "-1"], "is no price"),
        ([*POOL, "--price-per-gpu-hour", "1e400"], "no more than 10 digits"),
        ([*POOL, "--max-unavailable", "0"], "from 1 to 100,000"),
        ([*POOL, "--max-unavailable", HUGE], "from 1 to 100,000"),
        ([*POOL, "--environment", LONG], "At most 63 characters; these are 1,001"),
        ([*TOKEN, "--name", "x" * 101], "At most 100 characters; these are 101"),
        ([*TOKEN, "--name", " "], "This is blank"),
        (["accept_cluster", "rebuilt", "--reason", LONG], "At most 1,000 characters"),
        (["finding", "acknowledge", "1", "--reason", LONG], "At most 1,000 characters"),
        (["finding", "accept", "1", "--reason", " "], "Say why"),
        (["finding", "mute", "1", "--reason", "x", "--hours", f"-{HUGE}"], "from 1 to 10,000"),
        (["finding", "mute", "1", "--reason", "x", "--hours", "0"], "from 1 to 10,000"),
        (["finding", "mute", "1", "--reason", LONG, "--hours", "2"], "At most 1,000 characters"),
        (["finding", "mute", "1", "--reason", " ", "--hours", "2"], "Say why"),
        (["finding", "lift", "1", "--reason", LONG], "At most 1,000 characters"),
        (["rule", "shadow", "gpu-hot", "--reason", LONG], "At most 1,000 characters"),
        (["rule", "shadow", "gpu-hot", "--reason", " "], "Say why"),
        ([*LIMIT, "--reason", "x", "--warn-after", HUGE], "from 0 to 86,400"),
        ([*LIMIT, "--reason", "x", "--warn-after", "60", "--critical-after", HUGE], "from 0 to 86,400"),
        ([*LIMIT, "--reason", LONG, "--warn-after", "60"], "At most 1,000 characters"),
        ([*LIMIT, "--reason", " ", "--warn-after", "60"], "Say why"),
        ([*BACKTEST, "--warn-after", HUGE], "from 0 to 86,400"),
        ([*BACKTEST, "--most", "-1"], "from 0 to 1,000,000"),
        ([*SOURCE, f"https://192.0.2.1/{LONG}"], "At most 300 characters"),
        ([*SOURCE, "https://192.0.2.1", "--match", LONG], "At most 500 characters"),
        ([*SOURCE, "https://192.0.2.1", "--user", LONG], "At most 150 characters"),
        ([*SOURCE, "https://192.0.2.1", "--secret", LONG], "At most 300 characters"),
        ([*SOURCE, "https://192.0.2.1", "--ca-file", LONG], "At most 300 characters"),
        (["add_cluster", "x" * 64, "--context", "c"], "At most 63 characters"),
        (["add_cluster", "new", "--context", LONG], "At most 253 characters"),
        ([*CLUSTER, "--kubeconfig", "x" * 300], "File name too long"),
        ([*CLUSTER, "--kubeconfig", "/x" * 600], "has at most 1,024 characters; this has 1,200"),
        ([*CLUSTER, "--kubeconfig", "~nobody-here/config"], "write the whole path"),
        (["release_all", "mine", "--give-up-plans", LONG], "At most 1,000 characters"),
    ],
    ids=lambda given: " ".join(word[:20] for word in given) if isinstance(given, list) else "",
)
def test_it_is_refused_in_a_sentence(finding, words, says):
    words = [str(finding.pk) if word == "1" else word for word in words]
    before = AuditEntry.objects.count(), Pool.objects.count(), ApiToken.objects.count()

    with pytest.raises(CommandError, match=says):
        call_command(*words)

    assert (AuditEntry.objects.count(), Pool.objects.count(), ApiToken.objects.count()) == before


def test_what_fits_is_kept_without_the_blanks_around_it(finding):
    call_command(*POOL, "--price-per-gpu-hour", " 2.5 ", "--environment", " staging ", "--max-unavailable", "2")
    call_command(*TOKEN, "--name", " ci ")
    call_command("finding", "acknowledge", str(finding.pk), "--reason", f" {'x' * 1000} ")

    pool = Pool.objects.get(name="p")
    assert (str(pool.price_per_gpu_hour), pool.environment, pool.max_unavailable) == ("2.5000", "staging", 2)
    assert ApiToken.objects.get().name == "ci"
    assert AuditEntry.objects.get(verb="finding.acknowledge").reason == "x" * 1000


def test_what_is_no_text_is_refused_in_a_sentence():
    """A terminal that speaks Latin-1: Python reads such bytes as characters that no database takes."""
    command = [sys.executable, "manage.py", "stop", "--yes", "--reason", "Störung".encode("latin-1")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 1
    assert done.stderr == "Nothing was done: “St\\udcf6rung” is not UTF-8. Write it in a terminal that speaks UTF-8.\n"


def test_a_database_without_tables_is_said_to_be_one_that_is_to_be_migrated(tmp_path):
    """The first command of who did not read that `migrate` comes before it."""
    env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    env |= {"QUARTERDECK_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "config.settings.dev"}
    command = [sys.executable, "manage.py", "add_person", "ada"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 1
    assert done.stderr.endswith("of this version's migrations are not applied: run `bin/manage migrate`.\n")
    assert "Traceback" not in done.stderr
