"""A person at a terminal, whose server is Django's live one."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import time_machine

from cli.__main__ import main
from tests.make import NOON, a_token, a_user, counted


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path) -> Run:
    """Runs one command in this process, in a home of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("SERVER", "TOKEN", "CA_FILE"):
        monkeypatch.delenv(f"QUARTERDECK_{name}", raising=False)

    def ended(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["quarterdeck", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return Ended(int(end.value.code or 0), out, err)

    return ended


@pytest.fixture
def signed_in(transactional_db, live_server, run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Signs a new person in, with this role and these permissions of the token."""

    def sign_in(role: str | None = "operator", *, permissions: list[str] | None = None) -> Run:
        counted()
        monkeypatch.setenv("QUARTERDECK_SERVER", live_server.url)
        token = a_token(a_user(f"a-{role}", role=role), permissions=permissions)
        monkeypatch.setenv("QUARTERDECK_TOKEN", token)
        return run

    with time_machine.travel(NOON):
        yield sign_in
