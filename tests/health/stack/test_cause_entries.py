"""Every entry of `health/stack/causes/data/*.toml`."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest
import yaml
from django.conf import settings
from django.utils import timezone
from yaml import CSafeLoader

from gpu.entry_files import BadEntry, entry_of, make_entries
from health.stack.causes import Cause, Signs, cause_of, why_waits
from health.stack.causes.entries import DATA, LONGEST_TEXT, TABLES, CauseEntry, CauseMatcher
from kube.line_patterns import LINE_READ
from tests.health.stack.signs import a_pod, an_event, crashing, signs
from tests.search_steps import steps_of_search

RULES = [(table, rule) for table, rules in TABLES.items() for rule in rules]
MATCHED = [(table, rule) for table, rule in RULES if rule.entry.example and not (rule.find or rule.entry.premises)]

OF_TENANTS = ("tenants", "programs", "kubelet", "accelerators")
HOSTILE = (
    " ", "x", "1.", "/a", "a: ", "[(", '"\\', "error ", "failed to ", "CUDA error: ", "NCCL WARN ",
    "no such file or directory: ", "rpc error: code = Unknown desc = ", "cannot allocate memory cuda ",
    ", error: failed to load driver nvidia: ",
)  # fmt: skip

# Nobody read a source for these. An entry leaves this list with the address that has its message.
UNVERIFIED = {
    "confidential.state.cc_failed",
    "configuration.not_made.not_created",
    "crash.before.evicted",
    "crash.ended.stuck",
    "crash.last.init_never_ends",
    "crash.last.never_ready",
    "crash.last.not_ready_yet",
    "crash.last.starting",
    "crash.rule.crashed",
    "dra.imex.imex_failed",
    "images.other.image_pull",
    "mig.changing.mig_changing",
    "mig.state.mig_failed",
    "missing.rule.cannot_be_made",
    "missing.rule.missing",
    "missing.rule.tainted",
    "missing.rule.unscheduled",
    "missing.rule.unseen",
    "placement.without_pod.no_driver_made",
    "placement.without_pod.no_driver_managed",
    "placement.without_pod.no_driver_selects",
    "ready.rule.exporter_collects_nothing",
    "runtime.first.gpu_node_dead",
    "runtime.first.wsl_without_gpu",
    "runtime.rule.kubelet_resolv_conf",
    "sandbox.rule.vfio_not_bound",
    "sandbox.vgpu.vgpu_not_made",
    "tenants.dra.claim_not_made",
    "tenants.dra.compute_domain_not_ready",
    "tenants.dra.dra_driver_away",
    "tenants.last.being_created",
    "tenants.last.kept_waiting",
    "tenants.last.never_started",
    "tenants.last.not_started",
    "tenants.last.tenant_crashed",
    "tenants.last.tenant_failed",
    "tenants.placing.claim_unpublished",
    "tenants.placing.claim_waits",
    "tenants.placing.fits_no_node",
    "tenants.placing.fragmented",
    "tenants.placing.larger_than_any_node",
    "tenants.placing.matches_no_node",
    "tenants.placing.no_room",
    "tenants.placing.offered_by_no_node",
    "tenants.program.cuda_driver_not_given",
    "tenants.scheduler.queue_missing",
    "tenants.unready.tenant_not_ready",
    "validator.rule.waits_for_validator",
    "waiting.first.leaving",
    "waiting.then.waits",
}


def name(table: str, rule: CauseMatcher) -> str:
    return f"{table}.{rule.entry.key}"


def signs_of_example(table: str, rule: CauseMatcher) -> Signs:
    """A pod whose only line is the example."""
    entry, line = rule.entry, rule.entry.example
    operand = next(iter(sorted(entry.operands)), "node-status-exporter")
    if table == "images.rule":
        pod = a_pod(phase="Pending", reason="ImagePullBackOff", message=line)
    elif table.startswith("configuration"):
        pod = a_pod(phase="Pending", reason=next(iter(entry.reasons), "CreateContainerError"), message=line)
    elif table.endswith((".placing", ".scheduler")):
        pod = a_pod(phase="Pending", events=[an_event(line, "Unschedulable")])
    elif table == "ready.rule":
        pod = a_pod(is_ready=True, log=[line], is_log_of_ready=True)
    elif table.startswith("kubelet") or table in ("operands.hook", "runtime.pod", "runtime.rule", "runtime.first"):
        pod = a_pod(phase="Pending", events=[an_event(line)])
    else:
        log = () if table.startswith(("tenants", "accelerators", "runtime.last")) else (line,)
        pod = crashing(*log, last_words=line, container="main")
    given = {"mig_state": "failed"} if operand == "mig-manager" else {}
    found = signs(operand, pod, is_placed=entry.is_placed is not False, **given)
    return replace(found, labels={**found.labels, **entry.labels}, kernel="")  # no fact contradicts it


def test_every_entry_says_where_it_is_from_and_is_short():
    for table, rule in RULES:
        entry, which = rule.entry, name(table, rule)
        assert entry.unverified or date(2026, 1, 1) <= entry.date <= timezone.now().date(), which
        assert not entry.title.endswith("."), which
        assert entry.summary.endswith((".", "}")), which
        has_conditions = rule.find is not None or entry.premises or entry.is_leaving
        assert bool(entry.example) or not entry.patterns or has_conditions, which


def test_every_entry_without_a_source_is_listed():
    assert {name(*pair) for pair in RULES if pair[1].entry.unverified} == UNVERIFIED


def test_every_recording_that_is_a_source_has_the_example():
    recordings: dict[str, str] = {}
    for _, rule in RULES:
        _, _, path = rule.entry.source.partition("recording: ")
        if path and rule.entry.example:
            if path not in recordings:
                recordings[path] = str(yaml.load((settings.BASE_DIR / path).read_text(), CSafeLoader))
            assert repr(rule.entry.example)[1:-1] in recordings[path], rule.entry.key


def test_every_entry_knows_its_own_example_and_no_earlier_one_takes_it():
    for table, rule in MATCHED:
        given, which = signs_of_example(table, rule), name(table, rule)
        cause = why_waits(replace(given, operand="")) if table.startswith(OF_TENANTS) else cause_of(given)

        assert rule.match([rule.entry.example]), which
        assert cause is not None, which
        assert cause.key == rule.entry.key, which
        assert "{" not in cause.sentence + cause.action, which


def test_the_texts_with_the_facts_of_each_example_fit_a_line():
    for table, rule in MATCHED:
        cause = rule(signs_of_example(table, rule))

        assert len(cause.title) <= LONGEST_TEXT["title"], name(table, rule)
        assert len(cause.summary) <= LONGEST_TEXT["summary"], name(table, rule)


def test_every_table_is_tried():
    files = [DATA.parent / name for name in ("__init__.py", "images.py", "unknown.py")]
    written = "".join(path.read_text() for path in files)
    by_key = {"placement.plugin"}  # that of one operand, which its caller names

    assert {table for table in TABLES if f'"{table}"' not in written} == by_key


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"pattern": ["x"]}, "unknown pattern"),
        ({"title": "x" * 71}, "1 to 70 characters"),
        ({"summary": ""}, "1 to 140 characters"),
        ({"patterns": "x"}, "not of the type list"),
        ({"title": "{gpu}"}, "no fact gpu"),
        ({"when": "never_written"}, "no predicate never_written"),
        ({"premises": ["never written"]}, "no premise never written"),
        ({"quotes": ["rumour"]}, "no quote rumour"),
        ({"weight": "heavy"}, "heavy"),
        ({"date": "yesterday"}, "not of the type date"),
        ({"source": "somebody said so"}, "no https address"),
        ({"source": ""}, "source and date, or is unverified"),
        ({"unverified": True}, "source and date, or is unverified"),
        ({"example_of": "rumour"}, "no known kind"),
    ],
)
def test_an_entry_that_does_not_fit_is_named_with_its_file(tmp_path, change, error):
    row = {"key": "mine", "title": "T", "summary": "S.", "source": "https://x", "date": date(2026, 11, 28), **change}

    with pytest.raises(BadEntry, match=r"my\.toml: \[\[rule\]\] 1 mine: ") as refused:
        make_entries(tmp_path / "my.toml", "rule", [row], lambda each: CauseMatcher.of(entry_of(each, CauseEntry)))

    assert error in str(refused.value)


def test_every_pattern_compiles():
    """A process compiles a pattern only when it first tries it."""
    for table, rule in RULES:
        assert all(each.compiled for each in (*rule.patterns, *rule.facts)), name(table, rule)


def test_a_line_of_a_megabyte_is_matched_only_at_its_beginning():
    (rule,) = [rule for _, rule in RULES if rule.entry.key == "nouveau"]

    assert rule.match(["x" * 1_000_000 + "failed to unload nouveau"]) is None


def test_no_line_holds_a_worker():
    """A tenant chooses the lines of its log. Steps are counted, since a time would depend on the machine."""
    for pattern in {each.pattern for _, rule in RULES for each in (*rule.patterns, *rule.facts)}:
        assert steps_of_search(pattern, LINE_READ) < 10_000_000, pattern


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_lines_are_read_in_time(text):
    """Eight lines of 4 kB about one pod. It took 0.1 to 2.6 seconds when every pattern was searched."""
    lines = [(text * 4096)[: 4096 - at] for at in range(8)]
    waiting = signs(
        "", a_pod(phase="Pending", is_overdue=True, events=[an_event(line, "FailedMount") for line in lines])
    )
    crashed = signs("", crashing(last_words=lines[0], more_words=lines[1:], container="main"))
    operand = signs("device-plugin", crashing(*lines, container="ctr"))

    for read, given in ((why_waits, waiting), (why_waits, crashed), (cause_of, operand)):
        assert min(cpu_seconds(read, given) for _ in range(3)) < 0.15


def cpu_seconds(read: Callable[[Signs], Cause | None], given: Signs) -> float:
    began = time.process_time()
    read(replace(given))  # a copy has read no line yet
    return time.process_time() - began
