from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Certificate:
    path: Path
    key_path: Path

    @property
    def pem(self) -> bytes:
        return self.path.read_bytes()
