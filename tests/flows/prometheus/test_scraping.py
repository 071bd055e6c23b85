"""A real Prometheus scrapes the exporters of simulated clusters, as the demo has it beside itself."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo.prometheus import Scraped, Scraping
from tests.flows.prometheus.conftest import BCRYPTED, PASSWORD
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.prometheus


def test_a_series_names_its_gpu_its_exporter_and_who_holds_it(served: Any, east: dict[str, str]) -> None:
    server = served(Scraped("east", Path(east["kubeconfig"])))

    found = server.wait_for("DCGM_FI_DEV_GPU_TEMP", 16)

    (one,) = [each["metric"] for each in found if each["metric"]["gpu"] == "0" and "h100" in each["metric"]["hostname"]]
    assert one["exported_namespace"] == "pretraining"
    assert one["exported_pod"].startswith("llm-pretrain-")
    assert one["exported_container"] == "main"
    assert (one["namespace"], one["container"], one["job"]) == (
        "gpu-operator",
        "nvidia-dcgm-exporter",
        "nvidia-dcgm-exporter",
    )
    assert one["pod"].startswith("nvidia-dcgm-exporter-")
    assert "cluster" not in one


def test_where_their_labels_are_honoured_theirs_are_the_pods(served: Any, east: dict[str, str]) -> None:
    how = Scraping(interval_s=1, timeout_s=1, honor_labels=True)
    server = served(Scraped("east", Path(east["kubeconfig"])), how=how)

    found = server.wait_for("DCGM_FI_DEV_GPU_TEMP", 16)

    held = [each["metric"] for each in found if "h100" in each["metric"]["hostname"]]
    assert all(each["namespace"] == "pretraining" for each in held)
    assert not any("exported_pod" in each for each in held)


def test_one_server_has_several_clusters_by_a_label(served: Any, east: dict[str, str], west: dict[str, str]) -> None:
    how = Scraping(interval_s=1, timeout_s=1, names_clusters=True)
    scraped = (Scraped("east", Path(east["kubeconfig"])), Scraped("west", Path(west["kubeconfig"])))
    server = served(*scraped, how=how)

    server.wait_for('DCGM_FI_DEV_GPU_TEMP{cluster="east"}', 16)
    sliced = server.wait_for('DCGM_FI_DEV_FB_USED{cluster="west",GPU_I_ID!=""}', 32)

    assert {each["metric"]["GPU_I_PROFILE"] for each in sliced} == {"1g.10gb", "2g.20gb", "3g.40gb"}


def test_a_fault_is_seen_by_who_asks_prometheus(served: Any, east: dict[str, str]) -> None:
    server = served(Scraped("east", Path(east["kubeconfig"])))
    server.wait_for("DCGM_FI_DEV_XID_ERRORS", 16)
    fault = {"key": "xid", "node": "gpu-h100-001", "gpu": 3, "code": 48}

    httpx.post(f"{east['url']}/simulator/faults", json=fault, timeout=PATIENCE_S).raise_for_status()
    (found,) = server.wait_for("DCGM_FI_DEV_XID_ERRORS > 0", 1)
    httpx.post(
        f"{east['url']}/simulator/faults",
        json={"key": "silent_exporter", "node": "gpu-h100-001", "how": "html"},
        timeout=PATIENCE_S,
    ).raise_for_status()
    server.wait_for("up == 0", 1)
    httpx.delete(f"{east['url']}/simulator/faults", timeout=PATIENCE_S)

    assert (found["metric"]["gpu"], found["metric"]["err_code"], found["value"][1]) == ("3", "48", "48")
    server.wait_for("up == 1", 2)


def test_a_server_behind_a_password_lets_nobody_in_without(served: Any, east: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "web.yml"
    config.write_text(json.dumps({"basic_auth_users": {"quarterdeck": BCRYPTED}}))

    server = served(Scraped("east", Path(east["kubeconfig"])), web_config=config)
    refused = httpx.get(f"{server.url}/api/v1/query", params={"query": "up"}, timeout=PATIENCE_S)
    server.auth = ("quarterdeck", PASSWORD)

    assert refused.status_code == 401
    assert len(server.wait_for("up", 2)) == 2
