"""Django's own check of a production's settings, as docs/install.md has them given, finds nothing."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GIVEN = {
    "DJANGO_SETTINGS_MODULE": "config.settings.prod",
    "QUARTERDECK_SECRET_KEY": "Xq3v-9Tz_0aLkPwEr7YuIoB2nM4cD6fG8hJ1sKdVbNxZtRqWmEyUiOpAs",
    "QUARTERDECK_ALLOWED_HOSTS": "quarterdeck.example.com",
    "QUARTERDECK_TRUSTED_ORIGINS": "https://quarterdeck.example.com",
    "QUARTERDECK_PROXIES": "10.0.0.0/8",
    "DATABASE_URL": "postgres://quarterdeck:password@127.0.0.1/quarterdeck",
    "REDIS_URL": "redis://127.0.0.1:6379/0",
}


def check(**more: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **GIVEN, **more}, capture_output=True, text=True)


def test_a_production_as_documented_is_clean():
    ended = check()

    assert ended.returncode == 0, ended.stderr
    assert "no issues" in ended.stdout


def test_the_check_can_fail():
    assert check(QUARTERDECK_SECRET_KEY="short").returncode != 0


def test_every_variable_that_it_is_given_is_documented():
    documented = (ROOT / "docs" / "install.md").read_text()

    assert [name for name in GIVEN if f"`{name}`" not in documented] == []
