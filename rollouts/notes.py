"""What a person must know before a plan starts. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """One blocker or warning: what is the matter, and what would mend it."""

    code: str
    sentence: str
    fix: str = ""
