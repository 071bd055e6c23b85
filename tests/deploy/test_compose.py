"""What compose.yaml hands on to the processes."""

import re
from pathlib import Path

import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def test_the_proxy_in_front_can_be_named():
    """Else everybody comes from its address, and who guesses at a name locks its owner out."""
    written = (DEPLOY / "compose.yaml").read_text()
    given = yaml.safe_load(written)["services"]["web"]["environment"]

    assert given["QUARTERDECK_PROXIES"] == "${QUARTERDECK_PROXIES:-0}"
    assert "QUARTERDECK_PROXIES" in written.partition("\nx-quarterdeck")[0]


def test_every_variable_is_one_that_settings_read():
    settings = (DEPLOY.parent / "config" / "settings" / "base.py").read_text()
    read = set(re.findall(r'"([A-Z_]+)"', settings))

    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    ours = {name for each in services.values() if each["image"] == "quarterdeck" for name in each["environment"]}

    assert ours
    assert ours <= read
