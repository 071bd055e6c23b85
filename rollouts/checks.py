"""Preflight checks: what a person must know before a plan starts. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """What one preflight check says: a blocker or a warning, what is the matter, and what would mend it."""

    code: str
    sentence: str
    fix: str = ""
    is_grave: bool = False  # of a warning: shown as red as a blocker
    may_be_overridden: bool = False  # of a blocker: a person may start all the same, with a reason that is kept
