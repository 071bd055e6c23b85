"""Which processes make a stack, and how each is started."""

import sys
from dataclasses import dataclass
from pathlib import Path

MOST_NODES = 20_000  # as many as the simulator takes
CELERY = [sys.executable, "-m", "celery", "-A", "config"]
STATE = "fleet.state"  # the simulated cluster, from one start to the next
# Threads per queue. Observing a cluster takes one for about a minute, and a reflector, a thread of its own, per kind.
QUEUES = {"observe": 8, "rollouts": 2, "default": 2}

# The fleet runs 580.95.05. Under the faulty one tenants' pods crash on one kernel; all of NVIDIA's own pods are fine.
NEWER, FAULTY, KERNEL = "580.126.20", "580.142.10", "6.8.0-64-generic"
BREAKS_WORKLOADS = f"bad_driver:version={FAULTY},kernel={KERNEL},how=workloads"


@dataclass(frozen=True)
class Fleet:
    """The simulated fleet to start, or the API server that is there already and only lacks its actors."""

    name: str = "small"
    nodes: int = 64
    mix: str = ""  # what a mixed one is made of, as the simulator's --mix
    seed: int = 1
    speed: float = 20.0
    faults: tuple[str, ...] = ()
    is_kept: bool = False  # the next start in the same folder goes on with it
    authorization: str = "allow"  # or rbac: who may do what is for the roles in the cluster to say
    kubeconfig: Path | None = None
    context: str = "simulator"


def simulator(fleet: Fleet, folder: Path) -> list[str]:
    """It serves the Kubernetes API and plays all that lives in the cluster."""
    return [
        *(sys.executable, "-m", "simulator", "--port", "0"),
        *("--fleet", fleet.name, "--nodes", str(fleet.nodes)),
        *("--seed", str(fleet.seed), "--speed", str(fleet.speed)),
        *("--kubeconfig-out", str(folder / "kubeconfig"), "--request-log", str(folder / "requests.jsonl")),
        *("--authorization", fleet.authorization, "--janitor"),
        *(("--mix", fleet.mix) if fleet.mix else ()),
        *(("--state", str(folder / STATE)) if fleet.is_kept else ()),
        *faults(fleet),
    ]


def actors(fleet: Fleet) -> list[str]:
    """The same actors against an API server that somebody else runs."""
    return [
        *(sys.executable, "-m", "simulator.cast", "--kubeconfig", str(fleet.kubeconfig), "--context", fleet.context),
        *("--seed", fleet.name, "--nodes", str(fleet.nodes), "--speed", str(fleet.speed)),
        *faults(fleet),
    ]


def faults(fleet: Fleet) -> list[str]:
    """What is wrong with the fleet from the beginning."""
    return [word for fault in fleet.faults for word in ("--faults", fault)]


def web(port: int, *, or_another: bool) -> list[str]:
    """Pages, REST and WebSockets, at this port; where that one is taken and another will do, at any other."""
    return [sys.executable, "-m", "demo.web", str(port), *(["--or-another"] if or_another else [])]


def worker(queue: str) -> list[str]:
    """One queue's worker; nobody listens to gossip, and the row is the truth about who is alive."""
    quiet = ["--without-gossip", "--without-mingle", "--loglevel", "INFO"]
    return [*CELERY, "worker", "-Q", queue, "-P", "threads", "-c", str(QUEUES[queue]), "-n", f"{queue}@%h", *quiet]


def beat(folder: Path) -> list[str]:
    """The clock that finds what is due."""
    return [*CELERY, "beat", "--schedule", str(folder / "beat-schedule"), "--loglevel", "INFO"]


def past_usage(cluster: str) -> list[str]:
    """Makes up the usage of the days before, and ends."""
    return [sys.executable, "manage.py", "demo_usage", cluster]
