"""What the API server's log says of the Jobs that pull an image, and what is left of them.

It shares no rule with who makes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from benchmarks.crashing.oracle import JOBS, OURS, REFUSED, Violation
from benchmarks.crashing.words import Word

IMAGE_PULL = "quarterdeck.io/image-pull"
ASKED_AT = "quarterdeck.io/asked-at"
PROVES_FOR = "quarterdeck.io/proves-for"
TESTS = "quarterdeck-proof-"  # how their names begin
LANDS_WITHIN = timedelta(minutes=1)
BEGINS = {"freeze", "stop", "cancel", "abort", "rollback"}
ENDS = {"lift": {"freeze"}, "unstop": {"stop"}, "ask": {"cancel"}}
FIGURE = "leaked_jobs"


@dataclass
class Forbidden:
    """A word after which no Job is made: until another one ends it."""

    verb: str
    asked_since: Counter[str] = field(default_factory=Counter)  # turn → requests


class JobReading:
    """One log, read from its beginning. Whoever has asked anything since a word could know of it."""

    def __init__(self, entries: Sequence[dict[str, Any]], words: Sequence[Word]) -> None:
        self.entries, self.words = entries, words
        self.forbidden: list[Forbidden] = []
        self.edits = self.edits_when_asked = 0
        self.are_ours: dict[str, bool] = {}  # Jobs that are there
        self.made: set[tuple[str, str]] = set()  # rows for which there has been one, that nobody else deleted
        self.row_of: dict[str, tuple[str, str]] = {}
        self.began: dict[int, Counter[str]] = {}  # turn at a pull → requests of the others since it began

    def read(self) -> Iterator[Violation]:
        words = list(self.words)
        for number, entry in enumerate(self.entries):
            while words and words[0].after <= number:
                self._hear(words.pop(0).verb)
            yield from self._see(entry)

    def _hear(self, verb: str) -> None:
        if verb in BEGINS:
            self.forbidden.append(Forbidden(verb))
        ended = ENDS.get(verb, set())
        self.forbidden = [one for one in self.forbidden if one.verb not in ended]
        if verb == "ask":
            self.edits_when_asked = self.edits
        if verb in {"ask", "edit"}:
            self.edits += verb == "edit"
            self.forbidden = [one for one in self.forbidden if one.verb != "edit"]
            if (self.edits - self.edits_when_asked) % 2:  # every second one leads back to where it went
                self.forbidden.append(Forbidden("edit"))

    def _see(self, entry: dict[str, Any]) -> Iterator[Violation]:
        is_ours = entry["user_agent"].startswith(OURS)
        if is_ours:
            self._count(entry["user"])
        if JOBS not in entry["path"] or entry["code"] >= REFUSED or entry["method"] not in {"POST", "DELETE"}:
            return
        if _is_a_test(entry):
            return
        if is_ours:
            yield from self._judge_turn(entry)
        if entry["method"] == "POST":
            yield from self._see_made(entry, is_ours=is_ours)
        else:
            yield from self._see_deleted(entry, is_ours=is_ours)

    def _count(self, user: str) -> None:
        for one in (*(one.asked_since for one in self.forbidden), *self.began.values()):
            one[user] += 1
        if user.startswith("pull-"):
            self.began.setdefault(_number(user), Counter())

    def _judge_turn(self, entry: dict[str, Any]) -> Iterator[Violation]:
        number, where = _number(entry["user"]), f"{entry['method']} {entry['path']} at {entry['at']}"
        if any(later > number and since[entry["user"]] > 1 for later, since in self.began.items()):
            yield Violation("writes_out_of_turn", f"{where}, in turn {number} at the pull")

    def _see_made(self, entry: dict[str, Any], *, is_ours: bool) -> Iterator[Violation]:
        metadata, where = entry["body"]["metadata"], f"at {entry['at']}"
        self.are_ours[metadata["name"]] = is_ours
        if not is_ours:
            return
        row = metadata["labels"][IMAGE_PULL], metadata["annotations"][ASKED_AT]
        if row in self.made:
            yield Violation(FIGURE, f"{metadata['name']} was made once more {where}.")
        self.made.add(row)
        self.row_of[metadata["name"]] = row
        for one in self.forbidden:
            if one.asked_since[entry["user"]] > 1:
                yield Violation(FIGURE, f"{metadata['name']} was made {where}, after the word {one.verb}.")

    def _see_deleted(self, entry: dict[str, Any], *, is_ours: bool) -> Iterator[Violation]:
        name = entry["path"].rsplit("/", 1)[1]
        was_ours = self.are_ours.pop(name, False)
        if is_ours and not was_ours:
            yield Violation(FIGURE, f"{name} was somebody else's, and was deleted at {entry['at']}.")
        if was_ours and not is_ours:
            self.made.discard(self.row_of[name])  # whoever did not see it before makes another one


def jobs_at_the_end(jobs: Iterable[dict[str, Any]], pods: Iterable[dict[str, Any]]) -> Iterator[Violation]:
    """What pulls that are over have left."""
    for kind, each in (*(("Job", job) for job in jobs), *(("Pod", pod) for pod in pods)):
        if IMAGE_PULL in each["metadata"].get("labels", {}):
            yield Violation(FIGURE, f"{kind} {each['metadata']['name']} is still there.")


def _is_a_test(entry: dict[str, Any]) -> bool:
    """Of a node, by the plan's own rounds, in whose turns it is read by `oracle`."""
    body = entry.get("body")
    named = entry["path"].rsplit("/", 1)[1]
    metadata = body.get("metadata", {}) if isinstance(body, dict) else {}
    return named.startswith(TESTS) or PROVES_FOR in metadata.get("labels", {})


def test_jobs_at_the_end(jobs: Iterable[dict[str, Any]]) -> Iterator[Violation]:
    """Test Jobs that a plan which is over has left. One that landed a minute after it was asked for ends by itself."""
    for job in jobs:
        metadata = job["metadata"]
        if PROVES_FOR in metadata.get("labels", {}):
            asked, made = (
                datetime.fromisoformat(at) for at in (metadata["annotations"][ASKED_AT], metadata["creationTimestamp"])
            )
            if made - asked < LANDS_WITHIN:
                yield Violation(FIGURE, f"Test Job {metadata['name']} is still there.")


def _number(user: str) -> int:
    return int(user.removeprefix("pull-"))
