"""PromQL queries, and the label matchers that select a cluster in a shared Prometheus. Pure.

prometheus.io/docs/prometheus/latest/querying/basics: label matchers, strings; querying/functions: timestamp().
prometheus.io/docs/concepts/data_model: names of labels.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from health.telemetry.identity import HOST_LABELS, NAMES, SERIALS, WRITTEN, with_capital_variants
from health.telemetry.metrics import MetricSeries

MATCHERS_AT_MOST = 10
MATCHERS_CHARS = 500
# Identity of a device by exporter: DCGM's UUID (or uuid, as in 1.x) and GPU_I_ID, AMD's serial_number or, if blank,
# gpu_uuid, and the part.
KEYS = with_capital_variants(
    ("UUID", "uuid", "GPU_I_ID", "serial_number", "gpu_uuid", "gpu_partition_id", "gpu_compute_partition_type")
)
DETAIL_LABELS = with_capital_variants(
    (
        "gpu", "gpu_id", "id", "modelName", "card_model", "card_series", "GPU_I_PROFILE", "gpu_memory_partition_type",
        *(each for each in SERIALS if each not in KEYS),
        *HOST_LABELS,
        *WRITTEN,
    )
)  # fmt: skip
DETAILS = (*DETAIL_LABELS, "device", "pod", "exported_pod", "container", "instance", "job")
APART_S = 60.0  # between the samples of two exporters of one GPU at most, by whichever interval each is scraped
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_MATCHER = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]{0,62})\s*(=~|!~|!=|=)\s*"([^"\\\n]*)"\s*(?:,|$)')


class BadMatchers(ValueError):
    """The text is not a list of label matchers."""


@dataclass(frozen=True)
class Matchers:
    """Label matchers such as `cluster="eu-1"`, added to each query; empty if the server has only one cluster."""

    text: str = ""

    @classmethod
    def read(cls, text: str) -> "Matchers":
        """Returns the matchers in the text.

        :raises BadMatchers: with the error and its position
        """
        if len(text) > MATCHERS_CHARS:
            raise BadMatchers(f"Label matchers have at most {MATCHERS_CHARS} characters; these have {len(text)}.")
        inside, found, place = text.strip().removeprefix("{").removesuffix("}"), list[str](), 0
        while place < len(inside):
            match = _MATCHER.match(inside, place)
            if match is None:
                raise BadMatchers(
                    f'“{inside[place : place + 40]}” is not a label matcher. Write name="value", as in cluster="eu-1".'
                )
            name, operator, value = match.groups()
            if name == "__name__":
                raise BadMatchers("Quarterdeck sets __name__ itself. Give only labels of the cluster.")
            if operator in ("=~", "!~"):
                _check_pattern(value)
            found.append(f'{name}{operator}"{value}"')
            place = match.end()
        if len(found) > MATCHERS_AT_MOST:
            raise BadMatchers(f"At most {MATCHERS_AT_MOST} label matchers are allowed; these are {len(found)}.")
        return cls(",".join(found))

    def with_name(self, name: str) -> str:
        return f"{name}{{{self.text}}}"

    def and_one_of(self, label: str, values: Iterable[str]) -> "Matchers":
        """Returns these and a matcher for one of these values of a label; no matcher if there are none."""
        named = "|".join(sorted(values))
        return Matchers(f'{label}=~"{named}"' + (f",{self.text}" if self.text else "")) if named else self

    def with_names(self, pattern: str) -> str:
        inside = f'__name__=~"{pattern}"' + (f",{self.text}" if self.text else "")
        return f"{{{inside}}}"


def _check_pattern(pattern: str) -> None:
    """Checks a pattern. RE2's syntax is nearly Python's: a pattern refused here is refused by Prometheus, too."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError) as error:
        raise BadMatchers(f"“{pattern[:60]}” is not a regular expression: {error}.") from error


def values(name: str, matchers: Matchers) -> str:
    return f"max by ({', '.join(KEYS)}) ({matchers.with_name(name)})"


def times(name: str, matchers: Matchers) -> str:
    """Returns the query for sample times. The time in an instant query's answer is that of its evaluation."""
    return f"max by ({', '.join(KEYS)}) (timestamp({matchers.with_name(name)}))"


def newest_values(name: str, matchers: Matchers) -> str:
    """Returns the query for the highest fresh value of devices with several series.

    Two exporters collect at different times, and one started after an Xid does not report it. An older value is from a
    removed exporter pod.
    """
    series, keys = matchers.with_name(name), ", ".join(KEYS)
    newest = f"max by ({keys}) (timestamp({series})) - {APART_S:.0f}"
    return f"max by ({keys}) ({series} and (timestamp({series}) >= on ({keys}) group_left () ({newest})))"


def doubled(names: Iterable[str], matchers: Matchers) -> str:
    """Returns the query for devices with several series of one of these names."""
    return f"count(count by ({', '.join(('__name__', *KEYS))}) ({matchers.with_names('|'.join(names))}) > 1)"


def last_xids(name: str, matchers: Matchers) -> str:
    """Returns the query for the last Xid and its text, of the few devices that have one."""
    return f"max by ({', '.join((*KEYS, 'err_code', 'err_msg'))}) ({matchers.with_name(name)}) > 0"


def unplaced_xids(name: str, matchers: Matchers) -> str:
    """Returns the query for Xids of series without a GPU, with labels that may name their node."""
    nameless = ",".join([*(f'{key}=""' for key in NAMES), *filter(None, (matchers.text,))])
    by = ", ".join(("err_code", "err_msg", *HOST_LABELS, *WRITTEN, "pod", "instance"))
    return f"max by ({by}) ({name}{{{nameless}}}) > 0"


def non_zero_by_label(name: str, label: str, matchers: Matchers) -> str:
    """Returns the query for a device's non-zero values by a label of its series."""
    return f"max by ({', '.join((*KEYS, label))}) ({matchers.with_name(name)}) > 0"


def exported_names(pattern: str, matchers: Matchers) -> str:
    return f"count by (__name__) ({matchers.with_names(pattern)})"


def samples(names: Iterable[str], matchers: Matchers) -> str:
    """Returns the query for the number of samples in each exporter's last scrape, as Prometheus records it."""
    scraped, told = matchers.with_name("scrape_samples_post_metric_relabeling"), matchers.with_names("|".join(names))
    return f"max by (instance) ({scraped} and on (instance) {told})"


def exploding(pattern: str, matchers: Matchers, *, most: int, instances: Iterable[str] = ()) -> str:
    """Returns the query for exporters with more series of a name than `most`. Series without `instance` are left out.

    `instances` restricts it to these plain ones. Empty means all, which is slow with millions of series.
    """
    those = matchers.and_one_of("instance", (each.replace(".", "[.]") for each in instances))
    named = Matchers('instance!=""' + (f",{those.text}" if those.text else ""))
    return f"count by (__name__, instance) ({named.with_names(pattern)}) > {most}"


def devices(names: Iterable[str], matchers: Matchers) -> str:
    """Returns the query for each device with the labels of its identity and node."""
    return f"group by ({', '.join((*KEYS, *DETAILS))}) ({matchers.with_names('|'.join(names))})"


def names_within(pattern: str, matchers: Matchers, *, within_s: float) -> str:
    """Returns the query for names of series with a sample in the period before."""
    return f"count by (__name__) (last_over_time({matchers.with_names(pattern)}[{within_s:.0f}s]))"


def devices_within(names: Iterable[str], matchers: Matchers, *, within_s: float) -> str:
    """Returns the same as `devices`, for samples in the period before. Pods are left out: an hour has many."""
    ranged = f"last_over_time({matchers.with_names('|'.join(names))}[{within_s:.0f}s])"
    return f"group by ({', '.join((*KEYS, *DETAIL_LABELS))}) ({ranged})"


def extra_names_query(names: Iterable[str], covering: Iterable[str], matchers: Matchers, *, within_s: float) -> str:
    """Returns the query for those names that had a device which none of `covering` had, in the period before."""
    those, told = (
        f"last_over_time({matchers.with_names('|'.join(each))}[{within_s:.0f}s])" for each in (names, covering)
    )
    return f"count by (__name__) ({those} unless on ({', '.join(KEYS)}) {told})"


def exporters_within(names: Iterable[str], stems: Iterable[str], matchers: Matchers, *, within_s: float) -> str:
    """Returns the query for the exporter pod of each device in the period before.

    `stems` are the names of exporter pods without their unique parts.
    """
    called = matchers.and_one_of("pod", (f"{stem.replace('.', '[.]')}-[^-]+" for stem in stems))
    ranged = f"last_over_time({called.with_names('|'.join(names))}[{within_s:.0f}s])"
    return f"group by ({', '.join((*KEYS, 'pod'))}) ({ranged})"


def present(names: Iterable[str], matchers: Matchers) -> str:
    """Returns the query for the identities of existing devices."""
    return f"group by ({', '.join(KEYS)}) ({matchers.with_names('|'.join(names))})"


def is_plain(said: str) -> bool:
    """Returns whether the text is a UUID or a host and port. No other external text is written into a query."""
    return _PLAIN.fullmatch(said) is not None


def history(rows: Iterable[MetricSeries], uuids: Iterable[str], matchers: Matchers, *, within_s: float) -> str:
    """Returns the query for these devices: at each step the newest sample within `within_s`, so gaps stay gaps.

    `uuids` are plain ones. If only some values of a label count, each has a line.
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
        for device in with_capital_variants(NAMES)
    )
