"""Failures: each ends with one sentence, a way out, and its own exit code."""

import json
import os
import subprocess
import sys

import pytest

from tests.health.telemetry.prometheus.a_server import a_closed_port, a_server, saying
from tests.health.telemetry.prometheus.an_authority import Authority
from tests.make import a_plan, a_token, a_user
from tests.rooms import ROOT

PROBLEM = {"Content-Type": "application/problem+json"}


@pytest.mark.parametrize(
    ("role", "permissions", "sentence"),
    [
        ("viewer", None, "you need the role operator or admin on cluster"),
        ("operator", ["see"], "it was issued without “run”"),
    ],
)
def test_a_forbidden_command_names_what_is_missing(signed_in, role, permissions, sentence):
    plan = a_plan()

    ended = signed_in(role, permissions=permissions)("plan", "rollback", str(plan.pk), "--reason", "Slow")

    assert ended.code == 1
    assert sentence in ended.err
    assert "Ask an admin for the role, or create a token with this permission" in ended.err


def test_a_conflict_says_that_nothing_changed(signed_in):
    plan = a_plan()
    run = signed_in()
    run("plan", "halt", str(plan.pk), "--reason", "ECC errors")

    ended = run("plan", "halt", str(plan.pk), "--reason", "ECC errors")

    assert (ended.code, ended.err) == (
        1,
        "Error: The plan is already halted. Nothing was changed. Read the current state first.\n",
    )


def test_an_unknown_filter_lists_the_known_ones(signed_in):
    ended = signed_in()("get", "nodes", "-f", "colour=red")

    assert ended.code == 1
    assert "colour: Unknown filter. Known filters: capacity_type, cluster," in ended.err


def test_an_object_of_others_does_not_exist(signed_in):
    plan = a_plan()

    ended = signed_in(None)("get", "plans", str(plan.pk))

    assert (ended.code, ended.err) == (1, f"Error: plans/{plan.pk}: Not found, or you may not see it.\n")


def test_a_wrong_token_leads_to_the_sign_in(signed_in, monkeypatch):
    run = signed_in()
    monkeypatch.setenv("QUARTERDECK_TOKEN", "qd_of-nobody")

    ended = run("get", "nodes")

    assert ended.code == 6
    assert "unknown, expired or revoked. Sign in: quarterdeck login --server URL" in ended.err


def test_an_unavailable_server_is_asked_again_and_named(run, monkeypatch):
    monkeypatch.setattr("cli.server.PAUSE_S", 0)
    body = json.dumps({"detail": "The database is unreachable.", "status": 503}).encode()
    with a_server(saying(body, 503, **PROBLEM, **{"Retry-After": "0"})) as (address, asked):
        monkeypatch.setenv("QUARTERDECK_SERVER", address)
        monkeypatch.setenv("QUARTERDECK_TOKEN", "qd_x")
        ended = run("finding", "ack", "1")

    assert (ended.code, ended.err) == (5, "Error: The database is unreachable. Try again in 0 s.\n")
    assert len({headers["Idempotency-Key"] for headers in asked.headers_seen}) == 1
    assert len(asked.headers_seen) == 3


def test_an_answer_of_another_program_is_no_answer(run, monkeypatch):
    with a_server(saying(b"<h1>Bad gateway</h1>", 404)) as (address, _):
        monkeypatch.setenv("QUARTERDECK_SERVER", address)
        monkeypatch.setenv("QUARTERDECK_TOKEN", "qd_x")
        ended = run("finding", "ack", "1")

    assert ended.code == 5
    assert "answered 404, but not as Quarterdeck does. Check the address" in ended.err


def test_no_connection_names_the_address(run, monkeypatch):
    monkeypatch.setenv("QUARTERDECK_SERVER", f"http://127.0.0.1:{a_closed_port()}")
    monkeypatch.setenv("QUARTERDECK_TOKEN", "qd_x")

    ended = run("get", "nodes")

    assert ended.code == 5
    assert "No answer from http://127.0.0.1:" in ended.err


def test_a_foreign_certificate_is_refused_and_a_named_one_accepted(run, monkeypatch, tmp_path):
    authority = Authority(tmp_path, "company")
    body = json.dumps({"detail": "No.", "status": 401}).encode()
    with a_server(saying(body, 401, **PROBLEM), trusted=authority.serving()) as (address, _):
        monkeypatch.setenv("QUARTERDECK_SERVER", address)
        monkeypatch.setenv("QUARTERDECK_TOKEN", "qd_x")
        foreign = run("finding", "ack", "1")
        monkeypatch.setenv("QUARTERDECK_CA_FILE", authority.ca_file)
        trusted = run("finding", "ack", "1")

    assert (foreign.code, trusted.code) == (5, 6)
    assert "is not trusted" in foreign.err
    assert "--ca-file" in foreign.err


def test_a_token_is_never_sent_in_clear_text_to_another_machine(run, monkeypatch):
    monkeypatch.setenv("QUARTERDECK_SERVER", "http://quarterdeck.example.com")
    monkeypatch.setenv("QUARTERDECK_TOKEN", "qd_x")

    ended = run("get", "nodes")

    assert ended.code == 2
    assert "Use https://quarterdeck.example.com." in ended.err


@pytest.mark.parametrize(
    ("server", "token"),
    [
        ("https://ü..x", "qd_x"),
        ("https://[::1", "qd_x"),
        ("https://name:secret@host", "qd_x"),
        ("ftp://host", "qd_x"),
        ("https://host", "qd_ü"),
        ("https://host", "qd_a\nb"),
    ],
)
def test_a_wrong_address_or_token_is_named_before_it_is_used(run, monkeypatch, server, token):
    monkeypatch.setenv("QUARTERDECK_SERVER", server)
    monkeypatch.setenv("QUARTERDECK_TOKEN", token)

    ended = run("get", "nodes")

    assert ended.code == 2
    assert ("is not an address" in ended.err) == (token == "qd_x")


def test_the_stored_token_is_private_and_goes_to_its_server_only(signed_in, monkeypatch, tmp_path):
    run = signed_in()
    stored = tmp_path / "config" / "quarterdeck" / "login.json"

    signed = run("login", "--server", os.environ["QUARTERDECK_SERVER"])
    monkeypatch.delenv("QUARTERDECK_TOKEN")
    assert signed.out.startswith("Signed in to ")
    assert stored.stat().st_mode & 0o777 == 0o600
    assert run("get", "nodes").code == 0

    monkeypatch.setenv("QUARTERDECK_SERVER", "https://other.example.com")
    assert (run("get", "nodes").code, run("get", "nodes").err[:43]) == (
        6,
        "Error: No token for https://other.example.c",
    )
    monkeypatch.delenv("QUARTERDECK_SERVER")
    stored.chmod(0o644)
    assert f"Run: chmod 600 {stored}" in run("get", "nodes").err
    assert run("logout").code == 0
    assert not stored.exists()


def test_a_token_file_that_others_read_is_refused(signed_in, live_server, tmp_path):
    secret = tmp_path / "token"
    secret.write_text(a_token(a_user("ada", role="viewer")))
    secret.chmod(0o644)

    ended = signed_in()("login", "--server", live_server.url, "--token-file", str(secret))

    assert ended.code == 2
    assert "chmod 600" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "halt", "7"),
        ("get", "colours"),
        ("get", "nodes", "-f", "no-pair"),
        ("finding", "mute", "1", "--reason", "x", "--for", "soon"),
        ("why", "pod", "no-namespace"),
    ],
)
def test_a_wrong_argument_is_a_usage_error(run, monkeypatch, arguments):
    monkeypatch.setenv("QUARTERDECK_SERVER", "http://127.0.0.1:1")
    monkeypatch.setenv("QUARTERDECK_TOKEN", "qd_x")

    assert run(*arguments).code == 2


def test_a_shell_completes_kinds(tmp_path):
    asked = {"_QUARTERDECK_COMPLETE": "complete_bash", "COMP_WORDS": "quarterdeck get ", "COMP_CWORD": "2"}
    ended = subprocess.run(
        [sys.executable, "-m", "cli"], cwd=ROOT, env=os.environ | asked, capture_output=True, text=True, check=True
    )

    assert {"nodes", "operations"} <= set(ended.stdout.split())
