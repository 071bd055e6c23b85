"""What the API server's log says of test Jobs and image pulls, and what is left of them.

It shares no rule with who makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from benchmarks.crashing.oracle import Violation

ASKED_AT = "quarterdeck.io/asked-at"
PROVES_FOR = "quarterdeck.io/proves-for"
LANDS_WITHIN = timedelta(minutes=1)
FIGURE = "leaked_jobs"


@dataclass
class JobReading:
    """Whose Jobs there are, by their names."""

    are_ours: dict[str, bool] = field(default_factory=dict)
    made: set[tuple[str, str]] = field(default_factory=set)  # name and request of Jobs that nobody else deleted

    def take(self, entry: Mapping[str, Any], *, is_ours: bool, is_late: bool) -> Iterator[Violation]:
        """Takes a request that makes or deletes a Job."""
        where = f"at {entry['at']}"
        if entry["method"] == "POST":
            metadata = entry["body"]["metadata"]
            name, made = metadata["name"], (metadata["name"], metadata.get("annotations", {}).get(ASKED_AT, ""))
            self.are_ours[name] = is_ours
            if is_ours and made in self.made and not is_late:
                yield Violation(FIGURE, f"{name} was made once more {where}.")
            if is_ours:
                self.made.add(made)
        elif entry["method"] == "DELETE":
            name = entry["path"].rsplit("/", 1)[1]
            was_ours = self.are_ours.pop(name, False)
            if is_ours and not was_ours:
                yield Violation(FIGURE, f"{name} was somebody else's, and was deleted {where}.")
            if not is_ours:  # whoever did not see it before makes another one
                self.made = {each for each in self.made if each[0] != name}


def takes_gpus(job: Mapping[str, Any]) -> bool:
    """Returns whether the pod of a Job requests GPUs."""
    containers = job["spec"]["template"]["spec"]["containers"]
    return any("/gpu" in name for each in containers for name in each.get("resources", {}).get("limits", {}))


def test_jobs_at_the_end(jobs: Iterable[dict[str, Any]]) -> Iterator[Violation]:
    """Jobs that plans and operations left which are over. One that landed after a minute ends by itself."""
    for job in jobs:
        metadata = job["metadata"]
        if PROVES_FOR in metadata.get("labels", {}):
            asked, made = (
                datetime.fromisoformat(at) for at in (metadata["annotations"][ASKED_AT], metadata["creationTimestamp"])
            )
            if made - asked < LANDS_WITHIN:
                yield Violation(FIGURE, f"Test Job {metadata['name']} is still there.")
