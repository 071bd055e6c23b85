"""What a fleet's exporters say, read as a stranger would."""

import re
from typing import Any

from simulator.actors.apps import DCGM_EXPORTER
from simulator.pod_ends import Served
from tests.simulator.actors.stage import Stage

NODE = "gpu-h100-001"
SAMPLE = re.compile(r"(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)(?: (?P<at>-?\d+))?")
LABEL = re.compile(r'(\w+)="([^"]*)"')
Sample = tuple[dict[str, str], float]


def answer(stage: Stage, node: str = NODE, **env: str) -> Served | None:
    """`env`: what the exporter's container is told besides."""
    (pod,) = stage.pods(node, f"app={DCGM_EXPORTER}")
    if env:
        container = pod["spec"]["containers"][0]
        told = [*container["env"], *({"name": key, "value": value} for key, value in env.items())]
        asked: dict[str, Any] = {**pod["metadata"], "uid": f"{pod['metadata']['uid']}{env}"}
        pod = {**pod, "metadata": asked, "spec": {**pod["spec"], "containers": [{**container, "env": told}]}}
    return stage.play.exporters.serve(pod, "metrics")


def text(stage: Stage, node: str = NODE, **env: str) -> str:
    served = answer(stage, node, **env)
    assert served is not None
    return served.body.decode()


def samples(written: str, series: str) -> list[Sample]:
    found = [SAMPLE.fullmatch(line) for line in written.splitlines() if line.startswith(f"{series}{{")]
    return [(dict(LABEL.findall(each["labels"])), float(each["value"])) for each in found if each]


def values(stage: Stage, series: str, node: str = NODE, **env: str) -> list[float]:
    """By GPU, where none is cut or gone."""
    return [value for _, value in samples(text(stage, node, **env), series)]
