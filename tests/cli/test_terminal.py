"""What a terminal gets: no colors, and completions."""

import os
import pty
import subprocess
import sys

import pytest

from tests.rooms import ROOT
from tests.variants import nightly_but_first

ESCAPE = b"\x1b"


def at_a_terminal(*arguments: str, **variables: str) -> bytes:
    """Runs the command line in a real terminal, and returns all that it printed."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "cli", *arguments]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=os.environ | variables) as process:
        os.close(theirs)
        printed = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            printed += piece
        process.wait()
    os.close(ours)
    return printed


@pytest.mark.parametrize(
    "arguments", [("--help",), ("get", "nodes"), ("get", "nothing")], ids=["help", "refusal", "usage"]
)
@pytest.mark.parametrize(
    "variables", nightly_but_first([{"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}]), ids=["NO_COLOR", "FORCE_COLOR"]
)
def test_a_terminal_gets_no_colors(arguments, variables, tmp_path):
    printed = at_a_terminal(*arguments, TERM="xterm-256color", XDG_CONFIG_HOME=str(tmp_path), **variables)

    assert printed.strip()
    assert ESCAPE not in printed


@pytest.mark.parametrize(
    ("shell", "words", "expected"),
    [
        ("bash", "quarterdeck pl", ["plan"]),
        ("bash", "quarterdeck plan ro", ["rollback"]),
        ("zsh", "quarterdeck fin", "finding"),
    ],
)
def test_a_shell_completes_commands(shell, words, expected):
    variables = {"_QUARTERDECK_COMPLETE": f"complete_{shell}"}
    variables |= {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_TYPER_COMPLETE_ARGS": words}
    ended = subprocess.run(
        [sys.executable, "-m", "cli"], env=os.environ | variables, capture_output=True, text=True, check=True
    )

    assert ended.stdout.split() == expected if shell == "bash" else expected in ended.stdout


@pytest.mark.needs_kubectl
def test_kubectl_has_it_as_a_plugin(tmp_path):
    (tmp_path / "kubectl-quarterdeck").symlink_to(ROOT / "bin" / "quarterdeck")
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "XDG_CONFIG_HOME": str(tmp_path)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("QUARTERDECK_")}

    ended = subprocess.run(
        ["kubectl", "quarterdeck", "get", "nodes"], env=kept | variables, capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stderr.partition(".")[0]) == (6, "Error: No server")
