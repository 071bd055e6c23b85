"""How the demo tells a Prometheus of its clusters; that it does as it is told is tests/flows/prometheus."""

import base64
import json
from pathlib import Path

import pytest

from demo import prometheus
from demo.prometheus import NoPrometheusError, Scraped, Scraping
from demo.settings import contract
from demo.stack import Stack
from tests.demo.test_words import demo


def a_kubeconfig(folder: Path, server: str = "http://127.0.0.1:4000", **cluster: str) -> Path:
    written = folder / "kubeconfig"
    told = {
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": {"token": "hush-hush"}}],
        "contexts": [{"name": "simulator", "context": {"cluster": "c", "user": "u"}}],
    }
    written.write_text(json.dumps(told))
    return written


def test_it_scrapes_as_the_operators_service_monitor_does(tmp_path: Path):
    told = prometheus.configuration(tmp_path, [Scraped("east", a_kubeconfig(tmp_path))], Scraping())

    (job,) = told["scrape_configs"]
    assert told["global"] == {"scrape_interval": "15s", "scrape_timeout": "10s"}
    assert (job["scheme"], job["honor_labels"]) == ("http", False)
    assert job["relabel_configs"][-1]["replacement"] == "127.0.0.1:4000"
    assert not any(each.get("target_label") == "cluster" for each in job["relabel_configs"])


def test_secrets_are_files_that_only_their_user_reads(tmp_path: Path):
    authority = base64.b64encode(b"a certificate").decode()
    kubeconfig = a_kubeconfig(tmp_path, "https://127.0.0.1:4000", **{"certificate-authority-data": authority})

    told = prometheus.configuration(tmp_path, [Scraped("east", kubeconfig)], Scraping(names_clusters=True))

    (job,) = told["scrape_configs"]
    token, trusted = Path(job["authorization"]["credentials_file"]), Path(job["tls_config"]["ca_file"])
    assert (token.read_text(), trusted.read_bytes()) == ("hush-hush", b"a certificate")
    assert token.stat().st_mode & 0o077 == 0
    assert "hush-hush" not in json.dumps(told)
    assert {"target_label": "cluster", "replacement": "east"} in job["relabel_configs"]


def test_without_one_a_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NoPrometheusError, match="No prometheus is on the PATH"):
        prometheus.start(tmp_path, [], log=tmp_path / "log")


def test_a_demo_without_one_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    ended = demo("--prometheus", "--data-dir", str(tmp_path / "data"))

    assert ended.returncode == 1
    assert "No prometheus is on the PATH" in ended.stderr
    assert not (tmp_path / "data").exists()


def test_quarterdeck_is_told_of_the_one_that_runs_beside_it(tmp_path: Path):
    (tmp_path / "prometheus").mkdir()
    stack = Stack(tmp_path, with_prometheus=True)
    without = stack.sourcing()

    stack.prometheus_url = "http://127.0.0.1:9090"

    assert without == []
    assert stack.sourcing() == [["demo_prometheus", "demo", "http://127.0.0.1:9090"]]
    again = Stack(tmp_path)
    again._goes_on = True
    assert again.sourcing() == [["demo_prometheus", "demo", "http://127.0.0.1:9090", "--remove"]]
    assert contract(tmp_path, "", "", debug=False)["QUARTERDECK_TELEMETRY_LOOPBACK"] == "false"
    assert contract(tmp_path, "", "", debug=False, has_prometheus=True)["QUARTERDECK_TELEMETRY_LOOPBACK"] == "true"
