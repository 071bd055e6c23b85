import re
import tomllib

import pytest
import yaml
from django.urls import reverse

from config.version import VERSION
from tests.rooms import ROOT


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)
    assert project["version"] == VERSION


@pytest.mark.django_db
def test_the_footer_of_a_page_names_the_version(client):
    assert f"Quarterdeck {VERSION}</footer>" in client.get(reverse("sign-in")).content.decode()


def test_rest_names_the_version(ada):
    assert ada.get("/api/v1/version").json() == {"version": VERSION}


@pytest.mark.django_db
def test_rest_names_the_version_to_nobody_who_is_not_signed_in(client):
    assert client.get("/api/v1/version").status_code == 401


def test_the_schema_names_the_version(ada):
    assert ada.get("/api/v1/schema?format=json").json()["info"]["version"] == VERSION


def test_the_image_is_labelled_and_named_with_the_version():
    image = (ROOT / "deploy" / "Dockerfile").read_text()
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]

    assert f'org.opencontainers.image.version="{VERSION}"' in image
    assert "COPY manage.py pyproject.toml" in image
    assert {service["image"] for service in services.values() if "build" in service} == {f"quarterdeck:{VERSION}"}


def test_the_changelog_has_the_version_below_what_is_unreleased():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert headings[:2] == ["Unreleased", VERSION]
