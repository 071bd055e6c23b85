"""The life of a certificate or token. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

CLIENT_CERTIFICATE, TOKEN, SERVER_CERTIFICATE = "client certificate", "token", "certificate of the API server"
SHORTEST_LIFE = timedelta(days=7)  # credentials with a shorter life are renewed by a program: a plugin, the kubelet


@dataclass(frozen=True)
class CredentialLife:
    kind: str
    begins_at: datetime
    ends_at: datetime

    @property
    def is_renewed_by_hand(self) -> bool:
        return self.ends_at - self.begins_at >= SHORTEST_LIFE

    def written(self) -> dict[str, str]:
        """Returns it as JSON has it."""
        return {"kind": self.kind, "begins_at": self.begins_at.isoformat(), "ends_at": self.ends_at.isoformat()}

    @classmethod
    def read(cls, row: dict[str, str]) -> "CredentialLife":
        return cls(row["kind"], *(datetime.fromisoformat(row[name]) for name in ("begins_at", "ends_at")))
