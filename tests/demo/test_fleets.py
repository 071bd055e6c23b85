"""One fleet after another from the same checkout, as a person tries them who has added a cluster of their own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from demo.parts import STATE
from demo.stack import CLUSTER, PASSWORD
from demo.visitor import Visitor
from tests.demo.terminal import ROOT, Terminal
from tests.patience import PATIENCE_S

MINE = "eu-1"
pytestmark = pytest.mark.nightly


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Of a cluster that no demo started."""
    file = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "simulator", "--fleet", "none", "--kubeconfig-out", str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        assert json.loads(running.stdout.readline())
        yield file
        running.terminate()


def manage(named: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("QUARTERDECK_", "DJANGO_"))}
    own.pop("DATABASE_URL", None)
    return subprocess.run(["bin/manage", *words], cwd=ROOT, env=own | named, capture_output=True, text=True, check=True)


def clusters(terminal: Terminal) -> set[str]:
    """What it shows once it is up, to its last word."""
    terminal.url()
    terminal.wait_for("Ctrl-C ends it all")
    with Visitor(terminal.url(), "viewer").sign_in(PASSWORD) as viewer:
        return {cluster["name"] for cluster in viewer.all("/api/v1/clusters")}


def end(terminal: Terminal) -> None:
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.process.wait(timeout=PATIENCE_S) == 0


def test_a_cluster_that_a_person_added_outlives_another_fleet_and_a_lost_state(
    demo: Callable[..., Terminal], kubeconfig: Path
):
    """Each start is the whole stack, so the simulated cluster is another one, too, when the first fleet comes back."""
    plain = demo()
    assert clusters(plain) == {CLUSTER}
    adding = ["add_cluster", MINE, "--kubeconfig", str(kubeconfig), "--context", "simulator"]
    manage({"QUARTERDECK_DATA_DIR": str(plain.folder)}, *adding)

    mixed = demo("--fleet", "mixed")  # beside the other, which has another folder
    assert clusters(mixed) == {CLUSTER}
    end(mixed)
    end(plain)
    (plain.folder / STATE).unlink()

    again = demo()
    assert clusters(again) == {CLUSTER, MINE}
