"""`--clusters N`: as many clusters as asked for, with nothing in common but the process."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from tests.patience import PATIENCE_S


def test_each_cluster_has_its_own_address_and_its_own_kube_system(tmp_path: Path):
    words = ["--fleet", "small", "--nodes", "1", "--clusters", "3", "--kubeconfig-out", str(tmp_path / "kubeconfig")]
    process = subprocess.Popen([sys.executable, "-m", "simulator", *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())

    systems = [httpx.get(f"{each['url']}/api/v1/namespaces/kube-system").json() for each in said["clusters"]]
    process.send_signal(signal.SIGTERM)

    assert process.wait(PATIENCE_S) == 0
    assert len({system["metadata"]["uid"] for system in systems}) == 3
    assert [Path(each["kubeconfig"]).name for each in said["clusters"]] == [
        "kubeconfig",
        "kubeconfig-2",
        "kubeconfig-3",
    ]
    assert (said["url"], said["kubeconfig"]) == (said["clusters"][0]["url"], str(tmp_path / "kubeconfig"))
