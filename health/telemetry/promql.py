"""What a Prometheus is asked, and the label matchers by which a shared one knows a cluster. Pure.

prometheus.io/docs/prometheus/latest/querying/basics: label matchers, strings; querying/functions: timestamp().
prometheus.io/docs/concepts/data_model: names of labels.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from health.telemetry.identity import NAMES, SAID, SERIALS, WRITTEN, and_in_capitals
from health.telemetry.metrics import MetricSeries

MATCHERS_AT_MOST = 10
MATCHERS_CHARS = 500
# A device, by what each exporter calls it: DCGM's UUID (or uuid, as 1.x spelt it) and GPU_I_ID, AMD's serial_number, or
# gpu_uuid where that is blank, and which part of it.
KEYS = and_in_capitals(
    ("UUID", "uuid", "GPU_I_ID", "serial_number", "gpu_uuid", "gpu_partition_id", "gpu_compute_partition_type")
)
TOLD = and_in_capitals(
    (
        "gpu", "gpu_id", "id", "modelName", "card_model", "card_series", "GPU_I_PROFILE", "gpu_memory_partition_type",
        *(each for each in SERIALS if each not in KEYS),
        *SAID,
        *WRITTEN,
    )
)  # fmt: skip
DETAILS = (*TOLD, "device", "pod", "exported_pod", "container", "instance", "job")
APART_S = 60.0  # between the samples of two exporters of one GPU at most, by whichever interval each is scraped
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_MATCHER = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]{0,62})\s*(=~|!~|!=|=)\s*"([^"\\\n]*)"\s*(?:,|$)')


class BadMatchers(ValueError):
    """What was given is not a list of label matchers."""


@dataclass(frozen=True)
class Matchers:
    """`cluster="eu-1"`: written into each query. Empty: the server has one cluster's series only."""

    text: str = ""

    @classmethod
    def read(cls, text: str) -> "Matchers":
        """:raises BadMatchers: naming what is wrong, and where"""
        if len(text) > MATCHERS_CHARS:
            raise BadMatchers(f"Label matchers have at most {MATCHERS_CHARS} characters; these have {len(text)}.")
        inside, found, place = text.strip().removeprefix("{").removesuffix("}"), list[str](), 0
        while place < len(inside):
            match = _MATCHER.match(inside, place)
            if match is None:
                raise BadMatchers(
                    f'“{inside[place : place + 40]}” is no label matcher: write name="value", as in cluster="eu-1".'
                )
            name, operator, value = match.groups()
            if name == "__name__":
                raise BadMatchers("__name__ is written by Quarterdeck: give the labels that are the cluster's own.")
            if operator in ("=~", "!~"):
                _check_pattern(value)
            found.append(f'{name}{operator}"{value}"')
            place = match.end()
        if len(found) > MATCHERS_AT_MOST:
            raise BadMatchers(f"At most {MATCHERS_AT_MOST} label matchers are taken; these are {len(found)}.")
        return cls(",".join(found))

    def with_name(self, name: str) -> str:
        return f"{name}{{{self.text}}}"

    def and_one_of(self, label: str, values: Iterable[str]) -> "Matchers":
        """These, and one of our own: a label that has one of these values. Empty: any."""
        named = "|".join(sorted(values))
        return Matchers(f'{label}=~"{named}"' + (f",{self.text}" if self.text else "")) if named else self

    def with_names(self, pattern: str) -> str:
        inside = f'__name__=~"{pattern}"' + (f",{self.text}" if self.text else "")
        return f"{{{inside}}}"


def _check_pattern(pattern: str) -> None:
    """RE2's syntax is nearly Python's: what is refused here a Prometheus refuses, too."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError) as error:
        raise BadMatchers(f"“{pattern[:60]}” is no regular expression: {error}.") from error


def values(name: str, matchers: Matchers) -> str:
    return f"max by ({', '.join(KEYS)}) ({matchers.with_name(name)})"


def times(name: str, matchers: Matchers) -> str:
    """When the sample of each was taken: an instant query's own time is that of its evaluation."""
    return f"max by ({', '.join(KEYS)}) (timestamp({matchers.with_name(name)}))"


def newest_values(name: str, matchers: Matchers) -> str:
    """For devices that have several series of a name. The highest of those that are heard now: of two exporters each
    collects when it likes, and one that was started after an Xid does not say it. One that is older is of an exporter's
    pod that is gone.
    """
    series, keys = matchers.with_name(name), ", ".join(KEYS)
    heard = f"max by ({keys}) (timestamp({series})) - {APART_S:.0f}"
    return f"max by ({keys}) ({series} and (timestamp({series}) >= on ({keys}) group_left () ({heard})))"


def doubled(names: Iterable[str], matchers: Matchers) -> str:
    """How often a device has several series of one of these names. Nothing: none has."""
    return f"count(count by ({', '.join(('__name__', *KEYS))}) ({matchers.with_names('|'.join(names))}) > 1)"


def last_xids(name: str, matchers: Matchers) -> str:
    """With its words where the exporter has them: of the few devices that have one."""
    return f"max by ({', '.join((*KEYS, 'err_code', 'err_msg'))}) ({matchers.with_name(name)}) > 0"


def unplaced_xids(name: str, matchers: Matchers) -> str:
    """Those of series that name no GPU, with what may name their node."""
    nameless = ",".join([*(f'{key}=""' for key in NAMES), *filter(None, (matchers.text,))])
    by = ", ".join(("err_code", "err_msg", *SAID, *WRITTEN, "pod", "instance"))
    return f"max by ({by}) ({name}{{{nameless}}}) > 0"


def parts(name: str, label: str, matchers: Matchers) -> str:
    """What a device has by the values of a label that its series are told apart by, where it is not 0."""
    return f"max by ({', '.join((*KEYS, label))}) ({matchers.with_name(name)}) > 0"


def exported_names(pattern: str, matchers: Matchers) -> str:
    return f"count by (__name__) ({matchers.with_names(pattern)})"


def samples(names: Iterable[str], matchers: Matchers) -> str:
    """How many each exporter of devices gave at its last scrape, as each Prometheus writes it down of its targets."""
    scraped, told = matchers.with_name("scrape_samples_post_metric_relabeling"), matchers.with_names("|".join(names))
    return f"max by (instance) ({scraped} and on (instance) {told})"


def exploding(pattern: str, matchers: Matchers, *, most: int, instances: Iterable[str] = ()) -> str:
    """Exporters that have more series of a name than that. What has lost its `instance` says of no one exporter.

    `instances`: of these alone, plain ones. Empty: of all, which is long in coming where millions of series are kept.
    """
    those = matchers.and_one_of("instance", (each.replace(".", "[.]") for each in instances))
    named = Matchers('instance!=""' + (f",{those.text}" if those.text else ""))
    return f"count by (__name__, instance) ({named.with_names(pattern)}) > {most}"


def devices(names: Iterable[str], matchers: Matchers) -> str:
    """Each device with what tells which one it is, and of which node."""
    return f"group by ({', '.join((*KEYS, *DETAILS))}) ({matchers.with_names('|'.join(names))})"


def names_within(pattern: str, matchers: Matchers, *, within_s: float) -> str:
    """Names of series that had a sample in the time before."""
    return f"count by (__name__) (last_over_time({matchers.with_names(pattern)}[{within_s:.0f}s]))"


def devices_within(names: Iterable[str], matchers: Matchers, *, within_s: float) -> str:
    """As `devices`, of each that had a sample in the time before. Not whose pods: in an hour one has many."""
    ranged = f"last_over_time({matchers.with_names('|'.join(names))}[{within_s:.0f}s])"
    return f"group by ({', '.join((*KEYS, *TOLD))}) ({ranged})"


def names_beside(names: Iterable[str], telling: Iterable[str], matchers: Matchers, *, within_s: float) -> str:
    """Which of these names had, in the time before, a device that none of `telling` had."""
    those, told = (
        f"last_over_time({matchers.with_names('|'.join(each))}[{within_s:.0f}s])" for each in (names, telling)
    )
    return f"count by (__name__) ({those} unless on ({', '.join(KEYS)}) {told})"


def exporters_within(names: Iterable[str], stems: Iterable[str], matchers: Matchers, *, within_s: float) -> str:
    """Of each device that had a sample in the time before the pod it is from, where that is called as exporters are.

    `stems`: the names of their pods without what is each one's own.
    """
    called = matchers.and_one_of("pod", (f"{stem.replace('.', '[.]')}-[^-]+" for stem in stems))
    ranged = f"last_over_time({called.with_names('|'.join(names))}[{within_s:.0f}s])"
    return f"group by ({', '.join((*KEYS, 'pod'))}) ({ranged})"


def present(names: Iterable[str], matchers: Matchers) -> str:
    """Which devices there are, and nothing of them."""
    return f"group by ({', '.join(KEYS)}) ({matchers.with_names('|'.join(names))})"


def is_plain(said: str) -> bool:
    """A UUID, or the host and port of an exporter, that can be asked for by itself: nothing else of what is said is
    written into a query.
    """
    return _PLAIN.fullmatch(said) is not None


def history(rows: Iterable[MetricSeries], uuids: Iterable[str], matchers: Matchers, *, within_s: float) -> str:
    """Of these devices, at each step the newest sample of the time before it. What is older is none: a gap is a gap.

    `uuids`: plain ones. Where only some values of a label count, each has a line.
    """
    named: dict[tuple[str, frozenset[str]], list[str]] = {}
    for row in rows:
        named.setdefault((row.label if row.only else "", row.only), []).append(row.name)
    those = "|".join(uuid.replace(".", "[.]") for uuid in uuids)
    return " or ".join(
        f"max by ({', '.join(filter(None, ('__name__', *KEYS, label)))}) (last_over_time("
        f"{matchers.and_one_of(device, (those,)).and_one_of(label, only).with_names('|'.join(names))}"
        f"[{within_s:.0f}s]))"
        for (label, only), names in named.items()
        for device in and_in_capitals(NAMES)
    )
