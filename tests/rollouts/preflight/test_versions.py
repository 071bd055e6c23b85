"""What the matrix says of the version a plan goes to, and of the one a rollback leads to."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.models import Node
from gpu.compatibility import the_matrix
from people.models import AuditEntry
from rollouts.commands.plan_start import start
from rollouts.commands.preview import preview
from rollouts.commands.refusals import Blocked
from rollouts.components.driver import VERSION
from tests.make import NOON
from tests.rollouts.make import NEW, lines_of, steps_of
from tests.rollouts.rows import CANARY, REST, a_draft, a_driver_cluster


def barred(plan) -> dict[str, str]:
    return {check.code: check.sentence for check in preview(plan, now=NOON).blockers}


def warned(plan) -> list[str]:
    return [f"{check.code}: {check.sentence}" for check in preview(plan, now=NOON).warnings if check.is_grave]


def started(plan, owner, **given) -> None:
    start(plan, actor=owner, reason="It is time.", expected_revision=1, now=NOON, **given)


@pytest.mark.parametrize(
    ("version", "code", "words"),
    [
        ("999.1.1", "unknown-version", "newer than the matrix"),
        ("570.86.15", "unsupported", "reached its end of life"),
        ("500.10.10", "unknown-version", "does not know the branch"),
    ],
)
def test_a_version_that_is_unknown_or_unsupported_is_not_started(cluster, owner, version, code, words):
    plan = a_draft(cluster, owner, to_version=version)

    assert words in barred(plan)[code]
    with pytest.raises(Blocked):
        started(plan, owner)


def test_a_version_that_is_known_to_fail_on_some_nodes_says_on_how_many(cluster, owner):
    Node.objects.filter(name="node-2").update(gpu_product="Tesla-V100-SXM2-32GB")
    plan = a_draft(cluster, owner, to_version="595.71.05")

    said = barred(plan)["known-bad"]

    assert "does not work with driver 595.71.05" in said
    (check,) = [each for each in preview(plan, now=NOON).blockers if each.code == "known-bad"]
    assert "Nodes: 1 of 3" in lines_of(check)


def only_warned(plan, code: str, *, now: datetime = NOON) -> str:
    """The sentence of a warning that bars nothing, is not shown in red, and names the version's field."""
    told = preview(plan, now=now)
    assert told.blockers == []
    (check,) = [one for one in told.warnings if one.code == code]
    assert (check.is_grave, check.field, bool(steps_of(check))) == (False, "to_version", True)
    return check.summary


def test_a_branch_that_ends_soon_is_warned_of_with_its_last_month(owner):
    soon = datetime(2027, 1, 16, 12, tzinfo=UTC)
    plan = a_draft(a_driver_cluster(seen_at=soon), owner, to_version="595.91.07")

    sentence = "R595 (production) reaches its end of life in March 2027: in 74 days."
    assert only_warned(plan, "version-deprecated", now=soon) == sentence
    assert "version-deprecated" not in {check.code for check in preview(plan, now=NOON).warnings}


def test_a_version_that_the_matrix_does_not_know_with_this_operator_is_warned_of(cluster, owner):
    cluster.driver_objects.filter(kind="ClusterPolicy").update(operator_version="v26.7.0")
    listed, other = (a_draft(cluster, owner, to_version=version) for version in ("580.173.02", "580.126.20"))

    assert only_warned(other, "version-unknown").startswith("NVIDIA does not list 580.126.20 for operator 26.7.0.")
    assert "version-unknown" not in {check.code for check in preview(listed, now=NOON).warnings}


def test_a_kernel_that_nvidias_driver_containers_are_not_said_to_support_bars_the_start(cluster, owner):
    Node.objects.update(os_image="Ubuntu 22.04.5 LTS", kernel="6.8.0-64-generic")
    Node.objects.filter(name="node-2").update(kernel="6.11.0-1011-aws")
    cluster.driver_objects.filter(kind="ClusterPolicy").update(operator_version="v26.7.0")
    plan = a_draft(cluster, owner, to_version="595.91.07")

    (check,) = [each for each in preview(plan, now=NOON).blockers if each.code == "unsupported"]

    assert "6.11.0-1011-aws is not listed" in str(lines_of(check))
    assert "Nodes: 1 of 3" in lines_of(check)


def compatible(**options):
    return [replace(stage, gate_options=stage.gate_options | {"compatibility": options}) for stage in (CANARY, REST)]


def test_a_gate_that_the_matrix_cannot_answer_is_named_before_the_start_with_the_ways_out(cluster, owner):
    """Else the stage would wait for ever for what nobody knows."""
    version = "580.126.20"  # not among those that NVIDIA lists for this operator
    cluster.driver_objects.filter(kind="ClusterPolicy").update(operator_version="v26.7.0")
    plan = a_draft(cluster, owner, to_version=version, stages=compatible())

    checks = [check for check in preview(plan, now=NOON).blockers if check.code == "unmeasured"]

    assert [check.title for check in checks] == [
        "Compatibility of Canary could never pass",
        "Compatibility of Rest could never pass",
    ]
    assert "allow_unknown" in steps_of(checks[0])
    assert not checks[0].may_be_overridden
    for options in ({"allow_unknown": True}, {"advisory": True, "reason": "It is new."}):
        assert barred(a_draft(cluster, owner, to_version=version, stages=compatible(**options))) == {}


def test_a_maintained_and_listed_version_is_not_barred(cluster, owner):
    assert barred(a_draft(cluster, owner)) == {}


def test_a_version_that_no_list_names_is_a_warning_in_red(cluster, owner):
    plan = a_draft(cluster, owner, to_version="580.999.99")

    assert barred(plan) == {}
    assert any(each.startswith("version-unlisted: No known operator lists driver 580.999.99") for each in warned(plan))


def test_the_rollback_is_evaluated_too(cluster, owner):
    assert any(
        each.startswith("rollback: A rollback leads to driver 570.172.08. R570")
        for each in warned(a_draft(cluster, owner))
    )


def test_a_reason_of_its_own_overrides_it_and_is_kept_where_approvers_see_it(cluster, owner):
    plan = a_draft(cluster, owner, to_version="570.86.15")

    started(plan, owner, override_reason="NVIDIA asked us to try it.")

    plan.refresh_from_db()
    despite = plan.sealed["despite"]
    assert (despite["by"], despite["reason"]) == ("owner", "NVIDIA asked us to try it.")
    assert [check["code"] for check in despite["checks"]] == ["unsupported"]
    assert AuditEntry.objects.get(subject=plan.mark, verb="start").evidence["despite"] == despite


@pytest.mark.parametrize("reason", ["", "   "])
def test_no_reason_overrides_nothing(cluster, owner, reason):
    with pytest.raises(Blocked):
        started(a_draft(cluster, owner, to_version="999.1.1"), owner, override_reason=reason)


def test_a_reason_overrides_nothing_else(cluster, owner):
    cluster.mode = "observe-only"
    cluster.save()

    with pytest.raises(Blocked) as refusal:
        started(a_draft(cluster, owner, to_version="999.1.1"), owner, override_reason="All the same.")

    assert [blocker["code"] for blocker in refusal.value.blockers] == ["mode"]


def test_nobody_overrides_it_where_a_stage_goes_unasked(owner):
    cluster = a_driver_cluster()
    type(cluster).objects.update(approval="none")
    cluster.refresh_from_db()
    unasked = [CANARY, type(REST)("Rest", "pool", gate_options={"driver_version": {}})]

    with pytest.raises(Blocked) as refusal:
        started(a_draft(cluster, owner, to_version="999.1.1", stages=unasked), owner, override_reason="I want to.")

    assert "cannot be overridden" in refusal.value.blockers[0]["steps"][-1]


def test_a_plan_whose_start_was_not_overridden_names_nothing(cluster, owner):
    plan = a_draft(cluster, owner)

    started(plan, owner, override_reason="Not needed.")

    plan.refresh_from_db()
    assert plan.sealed["despite"] == {}


@pytest.mark.parametrize("text", ["５８０.126.20", "580.126.20\n", "580.126.٢٠", "580", "", "580..1"])
def test_only_plain_digits_are_a_version(text):
    assert not VERSION.fullmatch(text)


@given(st.from_regex(VERSION, fullmatch=True))
def test_every_version_that_can_be_written_is_known_or_not_without_an_error(version):
    matrix = the_matrix()

    assert isinstance(matrix.names_driver(version), bool)


def test_what_supports_every_node_leaves_nothing_to_say_of_the_version(cluster, owner):
    plan = a_draft(cluster, owner)

    said = preview(plan, now=NOON)

    assert said.blockers == []
    assert not [one for one in said.warnings if one.code != "rollback" and one.is_grave and NEW in one.sentence]


def test_a_version_newer_than_the_matrix_is_unknown(cluster, owner):
    said = barred(a_draft(cluster, owner, to_version="999.1.1"))["unknown-version"]

    assert "999.1.1 is newer than the matrix" in said
