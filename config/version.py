"""The version of Quarterdeck. `pyproject.toml` holds it; pages, `/healthz`, REST and the schema read it here."""

import tomllib
from pathlib import Path

from django.http import HttpRequest

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
VERSION: str = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["version"]


def version(_: HttpRequest) -> dict[str, str]:
    return {"version": VERSION}
