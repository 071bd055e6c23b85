"""A real Prometheus that scrapes the exporters of simulated clusters: the one on the PATH.

It finds them as the GPU Operator's ServiceMonitor would (a target for each exporter pod, every 15 s, its own labels
before theirs), but for the address: pods of a simulated cluster answer through its API server's proxy only.
"""

import base64
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo import tied
from demo.ports import LOOPBACK, free_port

BINARY = "prometheus"
JOB = "gpu-exporters"
FOUND_AGAIN_S = 15
KEPT_FOR = "3d"
MISSING = (
    "No prometheus is on the PATH. On Debian `apt-get install --no-install-recommends prometheus` brings it; the "
    "service that it starts is not needed."
)


class NoPrometheusError(Exception):
    """There is none."""


@dataclass(frozen=True)
class Scraped:
    """A cluster whose exporters are scraped, and what a person calls it."""

    cluster: str
    kubeconfig: Path
    context: str = "simulator"


@dataclass(frozen=True)
class Scraping:
    """How: what the operator's ServiceMonitor says, where nobody says otherwise."""

    interval_s: int = 15
    timeout_s: int = 10
    honor_labels: bool = False
    names_clusters: bool = False  # a label `cluster` on every series: one server has several


def binary() -> str:
    """Return the path of the server to run."""
    if found := shutil.which(BINARY):
        return found
    raise NoPrometheusError(MISSING)


def start(
    folder: Path,
    scraped: Sequence[Scraped],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    how: Scraping | None = None,
    port: int = 0,
    web_config: Path | None = None,
) -> tuple[tied.Child, str]:
    """Start it in a folder of its own; return it with its URL, before it answers.

    `web_config`: what its --web.config.file may say: basic auth, TLS.
    """
    program = binary()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    written = folder / "prometheus.yml"
    written.write_text(json.dumps(configuration(folder, scraped, how or Scraping()), indent=2))
    taken = free_port(port)
    command = [
        program,
        f"--config.file={written}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--storage.tsdb.retention.time={KEPT_FOR}",
        f"--web.listen-address={LOOPBACK}:{taken}",
        "--log.level=warn",
        *([f"--web.config.file={web_config}"] if web_config else []),
    ]
    child = tied.start(BINARY, command, log=log, env=os.environ if env is None else env)
    return child, f"http://{LOOPBACK}:{taken}"


def configuration(folder: Path, scraped: Sequence[Scraped], how: Scraping) -> dict[str, Any]:
    """Return what it is told. JSON is YAML."""
    return {
        "global": {"scrape_interval": f"{how.interval_s}s", "scrape_timeout": f"{how.timeout_s}s"},
        "scrape_configs": [job(folder, each, how) for each in scraped],
    }


def job(folder: Path, scraped: Scraped, how: Scraping) -> dict[str, Any]:
    """Return how the exporters of one cluster are found and asked."""
    way = way_in(folder, scraped)
    scheme, _, address = way.url.partition("://")
    trust = {"tls_config": {"ca_file": str(way.authority)}} if way.authority else {}
    return {
        "job_name": f"{scraped.cluster}/{JOB}",
        "scheme": scheme,
        "honor_labels": how.honor_labels,
        **({"authorization": {"credentials_file": str(way.token)}} if way.token else {}),
        **trust,
        # The simulator tells of pods as Kubernetes' own discovery would: Debian's Prometheus is built without that.
        "http_sd_configs": [{"url": f"{way.url}/simulator/targets", "refresh_interval": f"{FOUND_AGAIN_S}s", **trust}],
        "relabel_configs": [
            {"source_labels": ["__meta_kubernetes_pod_phase"], "regex": "Running", "action": "keep"},
            _copied("__address__", "instance"),
            _copied("__meta_kubernetes_namespace", "namespace"),
            _copied("__meta_kubernetes_pod_name", "pod"),
            _copied("__meta_kubernetes_pod_container_name", "container"),
            _copied("__meta_kubernetes_pod_container_port_name", "endpoint"),
            # As a ServiceMonitor's job: the name of the exporters' service, which is that of their DaemonSet.
            _copied("__meta_kubernetes_pod_label_app", "job"),
            *([{"target_label": "cluster", "replacement": scraped.cluster}] if how.names_clusters else []),
            {
                "source_labels": [
                    "__meta_kubernetes_namespace",
                    "__meta_kubernetes_pod_name",
                    "__meta_kubernetes_pod_container_port_number",
                ],
                "regex": "(.+);(.+);(.+)",
                "target_label": "__metrics_path__",
                "replacement": "/api/v1/namespaces/$1/pods/$2:$3/proxy/metrics",
            },
            {"target_label": "__address__", "replacement": address},
        ],
    }


def _copied(source: str, target: str) -> dict[str, Any]:
    return {"source_labels": [source], "target_label": target}


@dataclass(frozen=True)
class WayIn:
    """Where the API server is, with what it asks for as files."""

    url: str
    token: Path | None
    authority: Path | None


def way_in(folder: Path, scraped: Scraped) -> WayIn:
    """Read it of the kubeconfig that a simulator wrote; its secrets go into files that only this user reads."""
    told = json.loads(scraped.kubeconfig.read_text())
    context = next(each["context"] for each in told["contexts"] if each["name"] == scraped.context)
    cluster = next(each["cluster"] for each in told["clusters"] if each["name"] == context["cluster"])
    user = next(each["user"] for each in told["users"] if each["name"] == context["user"])
    authority = cluster.get("certificate-authority-data")
    return WayIn(
        cluster["server"],
        _secret(folder / f"{scraped.cluster}.token", user["token"].encode()) if user.get("token") else None,
        _secret(folder / f"{scraped.cluster}.crt", base64.b64decode(authority)) if authority else None,
    )


def _secret(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path
