"""The options that a step takes from whoever asks for it. Pages and REST make their fields of them. Pure.

A name stands for one option, whichever steps take it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Option:
    name: str  # in the options of an operation, and in REST
    label: str  # on pages
    help: str  # in REST
    is_linked: bool = False  # a link to the form may fill it
    in_preview: bool = False  # the impact depends on it

    @property
    def default(self) -> Any:
        return None


@dataclass(frozen=True)
class TextOption(_Option):
    longest: int = 200
    is_wide: bool = False

    @property
    def default(self) -> str:
        return ""


@dataclass(frozen=True)
class ChoiceOption(_Option):
    choices: Sequence[tuple[str, str]] = ()

    @property
    def default(self) -> str:
        return ""


@dataclass(frozen=True)
class SwitchOption(_Option):
    @property
    def default(self) -> bool:
        return False


@dataclass(frozen=True)
class NumberOption(_Option):
    least: int = 1
    most: int = 100
    usual: int = 1

    @property
    def default(self) -> int:
        return self.usual


@dataclass(frozen=True)
class DurationOption(_Option):
    """Whole seconds in REST, minutes on pages. The step may suggest one for the nodes."""

    least_s: int = 60
    most_s: int = 86_400
    is_required: bool = False  # on pages; REST may leave it out


StepOption = TextOption | ChoiceOption | SwitchOption | NumberOption | DurationOption
