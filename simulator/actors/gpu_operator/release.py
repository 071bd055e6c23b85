"""What differs between the operator's releases."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Release:
    version: str = "v26.7.0"

    @property
    def is_26_7(self) -> bool:
        """A policy for each NVIDIADriver, an owner label on nodes, and restarts without eviction."""
        major, minor, *_ = self.version.removeprefix("v").split(".")
        return (int(major), int(minor)) >= (26, 7)
