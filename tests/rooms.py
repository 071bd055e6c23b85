"""The rooms of this project, as `.importlinter` has them: one that is added there is in every test that reads code."""

from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[1]
STRANGERS = {"cli", "demo", "simulator"}


def _roots() -> tuple[str, ...]:
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    return tuple(contracts["importlinter"]["root_packages"].split())


OURS = _roots()
PRODUCT = tuple(room for room in OURS if room not in STRANGERS)
