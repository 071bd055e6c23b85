"""A real kubectl as a subprocess."""

import os
import shutil
import subprocess
import tempfile
import weakref
from pathlib import Path

from tests.patience import PATIENCE_S

TIMEOUT_S = PATIENCE_S


class Kubectl:
    def __init__(self, kubeconfig: Path, *, context: str = "simulator", program: str = "kubectl") -> None:
        self.program = program
        self.kubeconfig = kubeconfig
        self.context = context
        self.home = tempfile.mkdtemp(prefix="kubectl-home-")
        weakref.finalize(self, shutil.rmtree, self.home, ignore_errors=True)

    def words(self, *words: str) -> list[str]:
        return [self.program, "--kubeconfig", str(self.kubeconfig), "--context", self.context, *words]

    def environment(self) -> dict[str, str]:
        # Its own home: a discovery cache of another run would answer for this server.
        return {**os.environ, "HOME": self.home, "KUBECACHEDIR": self.home}

    def run(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*words),
            input=given,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env=self.environment(),
            check=False,
        )

    def says(self, *words: str, given: str = "") -> str:
        """Standard output of a run that must succeed."""
        done = self.run(*words, given=given)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refuses(self, *words: str, given: str = "") -> str:
        """Standard error of a run that must fail."""
        done = self.run(*words, given=given)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment()
        )
