"""What compose.yaml hands on to the processes."""

import re
from pathlib import Path

import environ
import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def test_the_proxy_in_front_can_be_named():
    """Else everybody comes from its address, and who guesses at a name locks its owner out."""
    written = (DEPLOY / "compose.yaml").read_text()
    given = yaml.safe_load(written)["services"]["web"]["environment"]

    assert given["QUARTERDECK_PROXIES"] == "${QUARTERDECK_PROXIES:-0}"
    assert "QUARTERDECK_PROXIES" in written.partition("\nx-quarterdeck")[0]


@pytest.mark.parametrize("password", ["plain", "p@ss/w#rd?", "100%25", "a:b c+d", "[x]&y=z\\"])
def test_any_password_of_the_database_is_one(password):
    written = (DEPLOY / "compose.yaml").read_text()
    services = yaml.safe_load(written)["services"]
    given = {
        name: value.replace("${POSTGRES_PASSWORD:?}", password)
        for name, value in services["web"]["environment"].items()
    }

    read = environ.Env.db_url_config(given["DATABASE_URL"])

    assert (read["HOST"], read["NAME"], read["USER"]) == ("postgres", "quarterdeck", "quarterdeck")
    assert (read["PASSWORD"] or given["PGPASSWORD"]) == password
    assert services["postgres"]["environment"]["POSTGRES_PASSWORD"] == "${POSTGRES_PASSWORD:?}"


def test_every_variable_is_one_that_settings_read():
    settings = (DEPLOY.parent / "config" / "settings" / "base.py").read_text()
    read = set(re.findall(r'"([A-Z_]+)"', settings))

    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    ours = {
        name for each in services.values() if each["image"].startswith("quarterdeck:") for name in each["environment"]
    }

    assert ours
    assert ours - {"PGPASSWORD"} <= read  # which libpq reads
