import shlex
import subprocess
from pathlib import Path

from demo.settings import environment, secret_key, write_for_shell


def test_the_secret_is_made_once_and_only_its_owner_reads_it(tmp_path: Path):
    first = secret_key(tmp_path / "secret.key")

    assert secret_key(tmp_path / "secret.key") == first
    assert (tmp_path / "secret.key").stat().st_mode & 0o077 == 0


def test_nothing_of_the_callers_own_quarterdeck_reaches_the_stack(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("QUARTERDECK_TRUSTED_ORIGINS", "https://elsewhere")
    monkeypatch.setenv("DATABASE_URL", "postgres://elsewhere/production")
    monkeypatch.setenv("KUBECONFIG", "/elsewhere")

    told = environment(tmp_path, redis_url="unix:///r", database_url="", debug=False)

    assert "elsewhere" not in " ".join(told.values())
    assert told["DATABASE_URL"] == f"sqlite:///{tmp_path / 'quarterdeck.sqlite3'}"


def test_a_shell_reads_the_variables_as_they_were_written(tmp_path: Path):
    file = tmp_path / "environment"
    write_for_shell(file, {"QUARTERDECK_SECRET_KEY": "it's $HOME `x`"})

    said = subprocess.run(
        ["sh", "-c", f'. {shlex.quote(str(file))}; printf %s "$QUARTERDECK_SECRET_KEY"'],
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout == "it's $HOME `x`"
