"""The packages that the checks read: those that `.importlinter` names."""

from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def rooms() -> list[str]:
    """Return the name of every package of ours."""
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    return contracts["importlinter"]["root_packages"].split()
