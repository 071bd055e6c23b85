from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class UncordoningManager:
    """The driver manager of a node takes a cordon off when it is done, whoever had set it (k8s-driver-manager #212)."""

    node: str
    key: ClassVar[str] = "uncordoning_manager"
