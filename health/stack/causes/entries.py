"""The causes in `data/*.toml`: schema, validation and the matcher.

A file is a list of tables; the order of entries in a table is the order in which they are tried. `operands` at the top
of a file applies to every entry without its own. All files are read and validated at import. A pattern is compiled
when a line first has its words: each process would compile all of them at its start, and most need none.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from string import Formatter
from typing import Any, Self

from gpu.entry_files import entry_of, make_entries, read_file
from gpu.resources.names import vendor_of as vendor_of_resource
from gpu.versions import parse_version, tag_of
from health.stack.causes.base import CC_MODE, VGPU_CONFIG, Cause, Event, Signs, Weight
from health.stack.causes.predicates import PREDICATES, Predicate, PredicateAnswer
from health.stack.causes.premises import PREMISES, asks_for_gpus
from health.stack.causes.vendor_words import in_words_of, steps_for, vendor_of
from kube.line_patterns import LINE_READ, LinePattern
from kube.log_lines import LineWeight, decisive_line, message_of, weight

DATA = Path(__file__).parent / "data"
QUOTED_IMAGE = re.compile(r'image \\?"([^"\\]+)\\?"')
LONGEST_TEXT = {"title": 70, "summary": 140, "steps": 150}  # characters
UNSAID = "(no line was read)"
GROUP_NAME = re.compile(r"\(\?P<(\w+)>")
READS_LOG = " logs {pod}"  # part of a step: not where no container has run
# A step that is done already where the container is known to ask for GPUs, of the vendor that the step names.
ASKS_FOR_GPUS = re.compile(
    r"Check that the (?:container|pod)(?: itself)? asks for (a GPU|(?:amd\.com/|gpu\.intel\.com/)[\w./ -]{2,60})\."
)
REPEATED = re.compile("back-off ", re.IGNORECASE)  # the kubelet repeats it for each container that ends


@dataclass(frozen=True, kw_only=True)
class CauseEntry:
    """One cause. All conditions of an entry must hold; a blank condition always holds."""

    key: str
    title: str
    summary: str
    steps: tuple[str, ...] = ()
    steps_alone: tuple[str, ...] = ()  # where no GPU Operator acts; blank: the same steps
    steps_unquoted: tuple[str, ...] = ()  # where no line was found; blank: the same steps
    weight: Weight = Weight.WRONG
    operands: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()  # one must match a line; named groups are facts
    facts: tuple[str, ...] = ()  # patterns whose named groups are facts; their line is quoted
    defaults: Mapping[str, str] = field(default_factory=dict)  # of facts
    quotes: tuple[str, ...] = ()  # sources of the quoted line without a pattern, best first
    quotes_else: str = ""  # source that is quoted if no other has a line; the steps stay `steps_unquoted`
    when: str = ""  # a predicate
    premises: tuple[str, ...] = ()  # what a fact of the node may contradict
    reasons: tuple[str, ...] = ()  # of the pod
    event_reasons: tuple[str, ...] = ()  # an Event of the pod has one; its message is quoted
    phases: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()  # the one that waits or crashed
    labels: Mapping[str, str] = field(default_factory=dict)  # of the node
    mig_states: tuple[str, ...] = ()
    is_leaving: bool | None = None
    is_overdue: bool | None = None
    is_placed: bool | None = None
    is_normal_at_first: bool = False  # healthy pods write the line too, while they start
    needs_error_level: bool = False  # a line at the level info does not count
    source: str  # the https address that has the message, or "recording: " and a file of this repository
    unverified: bool = False  # no source was read; `source` is blank and there is no date
    date: dt.date | None = None  # the day on which the source was read
    example: str = ""  # a line of the source; every entry with patterns has one
    example_of: str = ""  # "format string": the source has the format, the values are made up

    def __post_init__(self) -> None:
        steps = (*self.steps, *self.steps_alone, *self.steps_unquoted)
        for name, texts in (("title", [self.title]), ("summary", [self.summary]), ("steps", steps)):
            if any(not text or len(text) > LONGEST_TEXT[name] for text in texts):
                raise ValueError(f"{name}: each has 1 to {LONGEST_TEXT[name]} characters")
        if self.unverified == bool(self.source) or self.unverified == bool(self.date):
            raise ValueError("an entry has source and date, or is unverified")
        if self.event_reasons and self.when:
            raise ValueError("event_reasons and when are of two entries")
        if self.source and not self.source.startswith(("https://", "recording: tests/")):
            raise ValueError("source is no https address and no recording")
        if self.example_of not in ("", "format string"):
            raise ValueError("example_of is no known kind")


def _base_facts(signs: Signs) -> dict[str, str]:
    facts = {
        "node": signs.node,
        "kernel": signs.kernel or "of this node",
        "os": signs.os_image or "its system",
        "runtime": signs.runtime.partition(":")[0] or "the container runtime",
        "version": signs.runs_version,
        "mig_config": signs.mig_config or "(none named)",
        "cc_mode": signs.labels.get(CC_MODE) or "the default",
        "vgpu_config": signs.labels.get(VGPU_CONFIG) or "(none named)",
        "expected": str(signs.gpus_expected),
        "asker": signs.driver_asked_by,
    }
    pod = signs.pod
    namespace, _, name = pod.name.partition("/") if pod else ("", "", "")
    quoted = QUOTED_IMAGE.search(pod.message[:LINE_READ]) if pod else None
    image = quoted[1] if quoted else pod.image if pod else ""
    return facts | {
        "namespace": namespace,
        "pod": name,
        "container": (pod.container if pod else "") or "CONTAINER",
        "whose": f"Container {pod.container}" if pod and pod.container else "A container",
        "reason": (pod.reason if pod else "") or "no reason given",
        "phase": (pod.phase if pod else "") or "in an unknown phase",
        "times": f", {pod.restarts} restarts so far" if pod and pod.restarts else "",
        "previous": " --previous" if pod and pod.restarts else "",
        "image": image,
        "image_kernel": parse_version(tag_of(image)).kernel,
        "said": UNSAID,  # the message of the quoted line
        "event": "",  # reason of the Event that an entry asks for, and when it was last reported
        "event_at": "at an unknown time",
    }


def _event_facts(event: Event) -> dict[str, str]:
    at = {"event_at": f"at {event.last_at:%H:%M} UTC"} if event.last_at else {}
    return {"event": event.reason, **at}


BASE_FACTS = frozenset(_base_facts(Signs("", "", "", {})))
QUOTES: Mapping[str, Callable[[Signs], str]] = {
    "node": lambda signs: signs.not_ready_message,
    "reason": lambda signs: signs.pod.reason if signs.pod else "",
    "message": lambda signs: signs.pod.message if signs.pod else "",
    "last_words": lambda signs: signs.pod.last_words if signs.pod else "",
    "decisive_line": lambda signs: signs.pod.decisive_line if signs.pod else "",
    "log": lambda signs: decisive_line(signs.pod.log) if signs.pod else "",
    "last_line": lambda signs: "".join(signs.pod.log[-1:]) if signs.pod else "",
    "event": lambda signs: signs.pod.event.message if signs.pod and signs.pod.event else "",
    "unhealthy": lambda signs: signs.pod.unhealthy if signs.pod else "",
    "words": lambda signs: signs.pod.own_words if signs.pod else "",
}


@dataclass(frozen=True)
class CauseMatcher:
    """An entry with its conditions: returns a cause for signs that meet all of them."""

    entry: CauseEntry
    find: Predicate | None

    @classmethod
    def of(cls, entry: CauseEntry) -> Self:
        """:raises ValueError: for an unknown predicate, quote or placeholder."""
        if entry.when and entry.when not in PREDICATES:
            raise ValueError(f"no predicate {entry.when}")
        if unknown := {*entry.premises} - PREMISES.keys():
            raise ValueError(f"no premise {', '.join(sorted(unknown))}")
        if unknown := {*entry.quotes, entry.quotes_else or "node"} - QUOTES.keys():
            raise ValueError(f"no quote {', '.join(sorted(unknown))}")
        find, given = PREDICATES[entry.when] if entry.when else (None, frozenset())
        known = BASE_FACTS | given | entry.defaults.keys()
        known |= {name for pattern in (*entry.patterns, *entry.facts) for name in GROUP_NAME.findall(pattern)}
        if unknown := set(_placeholders(entry)) - known:
            raise ValueError(f"no fact {', '.join(sorted(unknown))}")
        return cls(entry, find)

    @cached_property
    def patterns(self) -> tuple[LinePattern, ...]:
        return tuple(map(LinePattern, self.entry.patterns))

    @cached_property
    def facts(self) -> tuple[LinePattern, ...]:
        return tuple(map(LinePattern, self.entry.facts))

    def __call__(self, signs: Signs) -> Cause | None:
        found = self._found(signs) if self._applies(signs) else None
        if found is None:
            return None
        match = self.match(self._lines(signs, found)) if self.entry.patterns else None
        if self.entry.patterns and match is None:
            return None
        if not all(PREMISES[name](signs, _groups(match)) for name in self.entry.premises):
            return None
        said = found.quote or (match.string if match else next(iter(found.lines or ()), "")) or self._quote(signs)
        facts = dict(found.facts) | _groups(match)
        if self.entry.facts and (more := next(_matches(self.facts, signs.all_lines()), None)):
            said, facts = more.string, facts | _groups(more)
        return self.cause(signs, said, facts, found.steps)

    def match(self, lines: Iterable[str]) -> re.Match[str] | None:
        """The match in the first line that a pattern matches."""
        return next(_matches(self.patterns, lines), None)

    def cause(
        self, signs: Signs, said: str = "", facts: Mapping[str, str] | None = None, steps: Sequence[str] = ()
    ) -> Cause:
        entry, filled = self.entry, _base_facts(signs) | dict(self.entry.defaults) | dict(facts or {})
        filled = dict.fromkeys((name for pattern in self.patterns for name in pattern.compiled.groupindex), "") | filled
        own = entry.steps if signs.has_operator else entry.steps_alone or entry.steps
        own = own if said else entry.steps_unquoted or own
        if signs.pod and not (signs.is_placed and signs.pod.may_have_log):
            own = tuple(step for step in own if READS_LOG not in step) or own
        own = tuple(step for step in own if not _is_request_that_is_made(step, signs)) or own
        quote = said.strip() or (QUOTES[entry.quotes_else](signs) if entry.quotes_else else "")
        if quote and not REPEATED.match(quote):
            filled["said"] = message_of(quote, LONGEST_TEXT["summary"] - len(entry.summary.replace("{said}", "")))
        has_said, vendor = "{said}" in entry.summary and filled["said"] != UNSAID, vendor_of(signs)
        return Cause(
            entry.key,
            entry.weight,
            _fill_text(in_words_of(vendor, entry.title), filled),
            _fill_text(in_words_of(vendor, entry.summary), filled),
            tuple(_fill_text(step, filled) for step in steps_for(vendor, own)) if not steps else tuple(steps),
            quote,
            filled["said"] if has_said else "",
        )

    def _applies(self, signs: Signs) -> bool:
        entry, pod = self.entry, signs.pod
        if entry.operands and signs.operand not in entry.operands:
            return False
        if any(signs.labels.get(key) != value for key, value in entry.labels.items()):
            return False
        if entry.mig_states and signs.mig_state not in entry.mig_states:
            return False
        if entry.is_placed is not None and signs.is_placed is not entry.is_placed:
            return False
        if pod is None:
            return not (entry.reasons or entry.phases or entry.containers or entry.is_leaving or entry.is_overdue)
        return (
            not (entry.is_normal_at_first and pod.is_coming_up)
            and (not entry.reasons or pod.reason in entry.reasons)
            and (not entry.phases or pod.phase in entry.phases)
            and (not entry.containers or pod.container in entry.containers)
            and entry.is_leaving in (None, pod.is_leaving)
            and entry.is_overdue in (None, pod.is_overdue)
        )

    def _found(self, signs: Signs) -> PredicateAnswer | None:
        if reasons := self.entry.event_reasons:
            events = signs.pod.events if signs.pod else ()
            event = next((each for each in events if each.reason in reasons), None)
            return PredicateAnswer(_event_facts(event), event.message, [event.message]) if event else None
        return self.find(signs) if self.find else PredicateAnswer()

    def _lines(self, signs: Signs, found: PredicateAnswer) -> Iterable[str]:
        lines = signs.all_lines() if found.lines is None else found.lines
        if not self.entry.needs_error_level:
            return lines
        return (line for line in lines if weight(line) >= LineWeight.WORDED)

    def _quote(self, signs: Signs) -> str:
        return next((line for name in self.entry.quotes if (line := QUOTES[name](signs))), "")


def _is_request_that_is_made(step: str, signs: Signs) -> bool:
    asked = ASKS_FOR_GPUS.fullmatch(step)
    vendor = vendor_of_resource(asked[1].partition(" or ")[0]) if asked else None
    return (
        asked is not None and asks_for_gpus(signs) and (vendor is None or vendor in map(vendor_of_resource, signs.asks))
    )


def _matches(patterns: Sequence[LinePattern], lines: Iterable[str]) -> Iterator[re.Match[str]]:
    for line in lines:
        for pattern in patterns:
            if match := pattern.search(line):
                yield match
                break


def _placeholders(entry: CauseEntry) -> Iterator[str]:
    for text in (entry.title, entry.summary, *entry.steps, *entry.steps_alone, *entry.steps_unquoted):
        yield from (name for _, name, _, _ in Formatter().parse(text) if name is not None)


def _groups(match: re.Match[str] | None) -> dict[str, str]:
    return {name: text or "" for name, text in match.groupdict().items()} if match else {}


def _fill_text(text: str, facts: Mapping[str, str]) -> str:
    filled = text.format_map(facts)
    return f"T{filled[1:]}" if filled.startswith("the ") else filled  # a runtime without a name


def _read_matchers(path: Path) -> dict[str, tuple[CauseMatcher, ...]]:
    tables = read_file(path)
    shared = {"operands": tables.pop("operands", [])}

    def make(row: Mapping[str, Any]) -> CauseMatcher:
        return CauseMatcher.of(entry_of(shared | dict(row), CauseEntry))

    return {f"{path.stem}.{name}": make_entries(path, name, rows, make) for name, rows in tables.items()}


TABLES: Mapping[str, tuple[CauseMatcher, ...]] = {
    name: rules for path in sorted(DATA.glob("*.toml")) for name, rules in _read_matchers(path).items()
}


def table(*names: str) -> tuple[CauseMatcher, ...]:
    """The entries of tables such as "driver.rule", in order."""
    return tuple(rule for name in names for rule in TABLES[name])


def entry(key: str) -> CauseMatcher:
    """The first entry of a key."""
    return entries(key)[0]


def entries(key: str) -> tuple[CauseMatcher, ...]:
    """All entries of a key, in the order of their files."""
    return tuple(rule for rules in TABLES.values() for rule in rules if rule.entry.key == key)
