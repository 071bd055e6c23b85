"""A shell may name somebody's own installation: no test reaches it."""

import os
import subprocess
from pathlib import Path

from tests.demo.terminal import ROOT

NAMED = {
    "DATABASE_URL": "postgres://db.example/production",
    "REDIS_URL": "redis://redis.example",
    "DJANGO_SETTINGS_MODULE": "config.settings.prod",
    "QUARTERDECK_DATA_DIR": "/var/lib/quarterdeck",
}
TEST = f"import os\n\n\ndef test_it():\n    assert not {set(NAMED)} & os.environ.keys()\n"


def test_no_test_knows_the_database_that_a_shell_names(tmp_path: Path):
    file = tmp_path / "test_it.py"
    file.write_text(TEST)

    ended = subprocess.run(
        ["bin/test", str(file)], cwd=ROOT, env=os.environ | NAMED, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout
