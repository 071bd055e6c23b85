"""What every command does before its own work, on a machine that has less than ours."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "dirname", "basename", "cmp", "mkdir", "rm", "cp", "cat")
COMMAND = '#!/bin/sh\nset -eu\n. "$(dirname "$0")/_setup"\nset_up requirements.txt\n"$PYTHON" -c "print(\'ready\')"\n'


class Machine:
    """A checkout with one command, and a PATH with nothing on it but what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.root, self.path, self.system = folder / "checkout", folder / "path", folder / "system-python"
        (self.root / "bin").mkdir(parents=True)
        self.path.mkdir()
        shutil.copy(ROOT / "bin" / "_setup", self.root / "bin")
        (self.root / "bin" / "show").write_text(COMMAND)
        (self.root / "requirements.txt").write_text("")
        for tool in TOOLS:
            (self.path / tool).symlink_to(shutil.which(tool) or tool)

    def has_python(self, script: str = 'exec "$REAL" "$@"', *, of_the_system: bool = False) -> None:
        python = self.system if of_the_system else self.path / "python3"
        python.write_text(f"#!/bin/sh\nREAL={sys.executable}\n{script}\n")
        python.chmod(0o755)

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", "bin/show"],
            cwd=self.root,
            env={"PATH": str(self.path), "QUARTERDECK_PYTHON": str(self.system)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self) -> tuple[int, str, str]:
        started = self.start()
        out, err = started.communicate(timeout=600)
        return started.returncode, out, err


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_python_it_says_which_one_to_install(machine: Machine):
    status, _, said = machine.run()

    assert status == 1
    assert "needs Python 3.11 or newer" in said


def test_an_older_python_is_not_taken(machine: Machine):
    machine.has_python('case "$*" in *version_info*) exit 1 ;; esac')

    status, _, said = machine.run()

    assert status == 1
    assert "needs Python 3.11 or newer" in said


def test_a_python_that_cannot_make_an_environment_is_named_with_the_remedy(machine: Machine):
    machine.has_python('case "$*" in *ensurepip*) exit 1 ;; esac\nexec "$REAL" "$@"')

    status, _, said = machine.run()

    assert status == 1
    assert "apt-get install python3-venv" in said


def test_two_first_starts_install_once_and_later_ones_only_what_changed(machine: Machine):
    """All in one environment, which takes a minute of a busy machine. The system's Python comes before another."""
    machine.has_python("exit 1")
    machine.has_python(of_the_system=True)
    both = [machine.start(), machine.start()]

    ended = [started.communicate(timeout=600) for started in both]
    _, out, said = machine.run()
    (machine.root / "requirements.txt").write_text("# another pin\n")
    _, _, said_after_change = machine.run()

    assert [out for out, _ in ended] == ["ready\n", "ready\n"]
    assert sum("Installing" in said for _, said in ended) == 1
    assert (out, said) == ("ready\n", "")
    assert "Installing" in said_after_change
