"""From what GPUs say to findings."""

from datetime import timedelta

import pytest
from django.db import connection

from fleet.models import DomainEvent, Node
from health.inbox import shadow_mode
from health.models import Finding, PoolLimits
from health.telemetry.snapshot import GpuDevice, TelemetrySnapshot
from tests.health.evaluation.saying import DEVICES, MINUTE, looked, open_ones
from tests.make import NOON, a_finding, a_node, a_node_event, a_pod, a_pool
from tests.reports import causes, steps, told

pytestmark = [pytest.mark.django_db, pytest.mark.rounds]


def test_a_hot_gpu_is_found_after_five_minutes(say):
    say(NOON, temperature_celsius={3: 84})
    assert open_ones() == []

    say(NOON + 5 * MINUTE, temperature_celsius={3: 84})

    assert open_ones() == [("gpu-hot", "GPU 3 of gpu-001", "warning")]
    assert Finding.objects.get().node == Node.objects.get()
    assert Finding.objects.get().gpu_uuid == DEVICES[3].uuid


def test_a_finding_of_before_its_board_was_known_learns_it(say):
    say(NOON, temperature_celsius={3: 84})
    Finding.objects.update(gpu_uuid="")

    say(NOON + MINUTE, temperature_celsius={3: 84})

    assert Finding.objects.get().gpu_uuid == DEVICES[3].uuid


def test_it_is_critical_once_it_is_for_as_long(say):
    say(NOON, temperature_celsius={3: 84})
    say(NOON + 5 * MINUTE, temperature_celsius={3: 90})
    assert open_ones() == [("gpu-hot", "GPU 3 of gpu-001", "warning")]

    say(NOON + 9 * MINUTE, temperature_celsius={3: 90})
    assert open_ones() == [("gpu-hot", "GPU 3 of gpu-001", "warning")]
    say(NOON + 10 * MINUTE, temperature_celsius={3: 90})

    assert open_ones() == [("gpu-hot", "GPU 3 of gpu-001", "critical")]


def test_one_hot_moment_does_not_count_towards_critical(say):
    say(NOON, temperature_celsius={3: 84})
    say(NOON + 5 * MINUTE, temperature_celsius={3: 90})
    say(NOON + 6 * MINUTE, temperature_celsius={3: 84})
    say(NOON + 7 * MINUTE, temperature_celsius={3: 90})

    say(NOON + 11 * MINUTE, temperature_celsius={3: 90})

    assert open_ones() == [("gpu-hot", "GPU 3 of gpu-001", "warning")]


def test_what_came_back_is_critical_once_it_is_for_as_long_this_time(say):
    for minutes, celsius in ((0, 84), (5, 90), (9, 60), (10, 84), (12, 90), (15, 90), (16, 90)):
        say(NOON + minutes * MINUTE, temperature_celsius={3: celsius})
    assert open_ones() == [("gpu-hot", "GPU 3 of gpu-001", "warning")]
    assert Finding.objects.get().times == 2

    say(NOON + 17 * MINUTE, temperature_celsius={3: 90})

    assert open_ones() == [("gpu-hot", "GPU 3 of gpu-001", "critical")]


def test_it_is_resolved_when_it_cooled_down(say):
    say(NOON, temperature_celsius={3: 84})
    say(NOON + 5 * MINUTE, temperature_celsius={3: 84})

    say(NOON + 6 * MINUTE)

    assert open_ones() == []
    assert Finding.objects.get().resolved_at is not None


def test_an_xid_is_found_at_once_with_its_words_on_the_timeline(say):
    say(NOON)

    say(NOON + MINUTE, xid={2: 154}, words="changed to 0x2 (Node Reboot Required)")

    assert open_ones() == [("gpu-xid", "GPU 2 of gpu-001", "critical")]
    assert "Reboot the node" in steps(Finding.objects.get())
    assert DomainEvent.objects.get().sentence.startswith("GPU 2 of gpu-001: Xid 154 (GPU")


@pytest.mark.parametrize(("column", "is_suspect"), [("driver_version", True), ("kernel", False)])
def test_a_new_driver_is_suspected_and_a_new_kernel_is_none(say, cluster, column, is_suspect):
    say(NOON)
    changed = {"column": column, "was": "1", "is": "2"}
    a_node_event(Node.objects.get(), at=NOON - MINUTE, kind="version", detail=changed)

    say(NOON + MINUTE, xid={2: 119})

    assert ("Suspect the new driver" in causes(Finding.objects.get())) is is_suspect


def test_what_an_old_sample_said_is_neither_judged_nor_forgotten(say):
    """Old values are not new ones (R73.5)."""
    say(NOON, xid={2: 79})
    assert [rule for rule, *_ in open_ones()] == ["gpu-xid"]

    say(NOON + 2 * MINUTE, silent={2})
    say(NOON + 4 * MINUTE, silent={2})

    assert [rule for rule, *_ in open_ones()] == ["gpu-silent", "gpu-xid"]
    assert "Last Xid: 79" in told(Finding.objects.get(rule="gpu-silent"))


@pytest.mark.parametrize(("booted_at", "found"), [(None, ["gpu-xid"]), (NOON + MINUTE, [])])
def test_the_last_sample_of_a_gauge_tells_whether_its_xid_is_of_before_a_boot(say, booted_at, found):
    Node.objects.update(upgrade_state="pod-restart-required")
    say(NOON, xid={2: 79})

    Node.objects.update(upgrade_state="", booted_at=booted_at)
    say(NOON + 2 * MINUTE, silent={2})

    assert [rule for rule, *_ in open_ones()] == found


def test_nothing_is_resolved_while_no_frame_comes(say, cluster):
    say(NOON, xid={2: 79})

    looked(cluster, NOON + 10 * MINUTE)

    assert [rule for rule, *_ in open_ones()] == ["gpu-xid"]


def test_nothing_is_resolved_while_redis_is_away(say, cluster, settings, tmp_path):
    say(NOON, xid={2: 79})
    there = settings.REDIS_URL
    settings.REDIS_URL = f"unix://{tmp_path}/none.sock"

    looked(cluster, NOON + MINUTE)

    assert [rule for rule, *_ in open_ones()] == ["gpu-xid"]
    settings.REDIS_URL = there


def test_while_its_driver_is_replaced_nothing_is_judged_and_after_it_is(say):
    """Z21."""
    Node.objects.update(upgrade_state="pod-restart-required")
    say(NOON, xid={2: 79})
    assert open_ones() == []

    Node.objects.update(upgrade_state="upgrade-done")
    say(NOON + MINUTE, xid={2: 79})

    assert [rule for rule, *_ in open_ones()] == ["gpu-xid"]


def test_a_finding_stays_while_its_nodes_driver_is_replaced(say):
    say(NOON, xid={2: 79})
    Node.objects.update(upgrade_state="pod-restart-required")

    say(NOON + MINUTE)

    assert [rule for rule, *_ in open_ones()] == ["gpu-xid"]


def test_a_node_that_is_gone_takes_its_findings_along(say, cluster):
    say(NOON, xid={2: 79})
    a_node(cluster, "gpu-002")
    Node.objects.get(name="gpu-001").delete()
    say.devices = tuple(GpuDevice("gpu-002", index, f"GPU-x{index}") for index in range(8))

    say(NOON + MINUTE)

    assert open_ones() == []


def test_fallen_off_a_fourth_time_it_is_the_hardware_and_that_is_said_at_once(say):
    said = []
    for hour in range(4):
        at = NOON + timedelta(hours=hour)
        say(at)
        say(at + MINUTE, xid={2: 79})
        said.append("Have the hardware replaced" in steps(Finding.objects.open().get()))

    assert Finding.objects.get(rule="gpu-xid").times == 4  # each soon after the one before was over
    assert said == [False, False, False, True]
    assert "had it 4 times in 30 days" in causes(Finding.objects.get())


@pytest.mark.parametrize("while_open", [True, False])
def test_what_opened_again_for_another_xid_is_not_counted_as_this_one(say, while_open):
    for hour in range(3):
        say(NOON + timedelta(hours=hour), xid={2: 31})
        say(NOON + timedelta(hours=hour, minutes=40), xid={2: 0 if hour < 2 or not while_open else 31})

    for hour in (3, 4, 5, 6):
        say(NOON + timedelta(hours=hour), xid={2: 79})
        probable_cause = causes(Finding.objects.open().get())
        assert ("had it 4 times in 30 days" in probable_cause) is (hour == 6)
        say(NOON + timedelta(hours=hour, minutes=40))


@pytest.mark.parametrize("first", [48, 63])
def test_a_double_bit_error_with_a_remap_asks_for_the_node_to_be_drained_first(say, first):
    say(NOON)
    say(NOON + MINUTE, xid={2: first, 4: 48})

    say(NOON + 2 * MINUTE, xid={2: 48 + 63 - first, 4: 48})

    with_remap, alone = Finding.objects.open().order_by("subject")
    assert (with_remap.severity, alone.severity) == ("critical", "critical")
    assert "Xid 63 came with it" in causes(with_remap)
    assert (with_remap.facts["action"], alone.facts["action"]) == ("drain-and-reset", "reset-gpu")
    assert with_remap.facts["source"].startswith("https://docs.nvidia.com/deploy/xid-errors/")


@pytest.mark.parametrize(("first", "then"), [(48, 45), (45, 48)])
def test_what_a_killed_process_leaves_is_nothing_alone_and_follows_what_else_there_is(say, first, then):
    """Z22."""
    say(NOON)
    say(NOON + MINUTE, xid={2: first, 4: 45})

    say(NOON + 2 * MINUTE, xid={2: then, 4: 45})

    assert open_ones() == [("gpu-xid", "GPU 2 of gpu-001", "critical")]
    assert Finding.objects.open().get().facts["xid"] == 48


def test_gpus_that_fall_off_together_are_one_fall_of_their_node(say):
    say(NOON)

    for minutes in (1, 2):
        say(NOON + minutes * MINUTE, xid=dict.fromkeys(range(8), 79))

    assert len(open_ones()) == 8
    assert all("Have the hardware replaced." not in row.steps for row in Finding.objects.all())


def again_and_again(say, number: int, *places: int) -> None:
    for hours in (0, 2, 4):
        say(NOON + timedelta(hours=hours))
        say(NOON + timedelta(hours=hours, minutes=1), xid=dict.fromkeys(places, number))


@pytest.mark.parametrize("number", [13, 31])
def test_an_applications_error_again_and_again_on_one_gpu_may_be_the_hardware(say, number):
    other = a_node(say.cluster, "gpu-009")
    once = {"rule": "gpu-xid", "gpu_uuid": "O-0", "facts": {"xid": number}}
    a_finding(say.cluster, "GPU 0 of gpu-009", node=other, **once)

    again_and_again(say, number, 2)

    found = Finding.objects.open().get(gpu_uuid="GPU-2")
    assert found.severity == "warning"
    assert "had it 3 times in a day, far more than" in causes(found)
    assert found.facts["action"] == "run-diagnostics"


def test_what_the_gauge_still_shows_of_an_error_that_is_over_is_not_once_more(say):
    say(NOON)
    counted = {"xids_counted": {2: 1.0}, "parts": {2: {"xids_counted": {"13": 1.0}}}}
    for hours in (0, 4):
        for minutes in (1, 2):
            say(NOON + timedelta(hours=hours, minutes=minutes), xid={2: 13}, **counted)
        assert open_ones() == [("gpu-xid", "GPU 2 of gpu-001", "note")]

        for minutes in (70, 71, 72):
            say(NOON + timedelta(hours=hours, minutes=minutes), xid={2: 13}, xids_counted={})
            assert open_ones() == []


def test_and_is_no_news_any_more_once_it_stayed_away_for_a_day(say):
    again_and_again(say, 31, 2)
    latched = NOON + timedelta(hours=4, minutes=1)

    say(latched + timedelta(hours=19), xid={2: 31})
    assert [severity for *_, severity in open_ones()] == ["warning"]

    say(latched + timedelta(hours=25), xid={2: 31})
    assert open_ones() == []


@pytest.mark.parametrize("number", [13, 31])
def test_an_applications_error_as_often_on_other_gpus_is_the_applications(say, number):
    """A fault of an application is not one of the hardware (R73.7)."""
    again_and_again(say, number, 2, 5)

    assert [severity for *_, severity in open_ones()] == ["note", "note"]
    for found in Finding.objects.open():
        assert "Other GPUs of the cluster had it within a day too" in causes(found)
        assert found.facts["action"] == "restart-app"


def test_a_fall_that_was_tried_and_told_is_counted_once(say, cluster):
    for hours in (1, 2):
        say(NOON + timedelta(hours=hours), xid={2: 79})
        say(NOON + timedelta(hours=hours, minutes=40))
    say(NOON + timedelta(hours=3), xid={2: 79})
    row = shadow_mode.begin("gpu-xid", actor="ada", reason="x", now=NOON + timedelta(hours=3))
    shadow_mode.end_shadow_mode(row, actor="ada", reason="x", now=NOON + timedelta(hours=3))
    assert [row.times for row in Finding.objects.filter(rule="gpu-xid").order_by("pk")] == [3, 1, 1]

    say(NOON + timedelta(hours=3, minutes=1), xid={2: 79})

    assert "Have the hardware replaced" not in steps(Finding.objects.open().get())


@pytest.mark.parametrize("number", [1, 8])
def test_a_look_at_known_suspects_asks_no_more_for_more_of_them(say, django_assert_num_queries, number):
    say(NOON, xid=dict.fromkeys(range(number), 79.0))

    with django_assert_num_queries(67 + connection.features.has_select_for_update):  # where there are rows to lock
        say(NOON + MINUTE, xid=dict.fromkeys(range(number), 79.0))


def reset(at, index: int = 2) -> None:
    a_node_event(Node.objects.get(), at=at, kind="reset", detail={"gpu": index})


def joules(anew: int | None) -> dict[str, dict[int, float]]:
    """What GPUs have used: one of them since a moment ago."""
    return {"energy_joules": {place: 5.0 if place == anew else 9e6 for place in range(8)}}


def test_a_gpu_that_is_reset_a_third_time_within_a_day_is_found_and_is_over_in_an_hour(say):
    for hours in (30, 20, 10):  # one of them is too long ago
        reset(NOON - timedelta(hours=hours))
    say(NOON - MINUTE, **joules(None))
    say(NOON, **joules(2))
    assert open_ones() == []

    reset(NOON)
    say(NOON + MINUTE, energy_joules={place: 9e6 if place != 2 else 50.0 for place in range(8)})

    assert open_ones() == [("gpu-resets", "GPU 2 of gpu-001", "warning")]
    later = dict.fromkeys(range(8), 9000000.0 + 9)
    for minutes in (31, 62, 93):
        say(NOON + minutes * MINUTE, energy_joules=later)
    assert open_ones() == []


def test_neither_several_at_once_nor_all_of_a_node_are_one_gpus_resets(say):
    for hours in (9, 6, 3):
        reset(NOON - timedelta(hours=hours), 2)
        reset(NOON - timedelta(hours=hours), 3)
    say(NOON - MINUTE, **joules(None))

    say(NOON, **joules(2))
    say(NOON + MINUTE, energy_joules={place: 6.0 + (place != 2) * 9e6 for place in range(8)})

    assert open_ones() == []


def with_limits(cluster, name: str, *nodes: str, **given):
    pool = a_pool(cluster, name)
    pool.nodes.add(*Node.objects.filter(name__in=nodes))
    row = {"rule": "gpu-hot", "warn_after_s": 120, "critical_after_s": 60, "by": "ada", "at": NOON, "reason": "x"}
    return PoolLimits.objects.create(pool=pool, **row | given)


def test_a_pools_own_limits_hold_for_its_nodes_and_the_sentence_names_no_pool(say, cluster):
    with_limits(cluster, "cool", "gpu-001", warn=70, critical=80)
    say(NOON, temperature_celsius={3: 72})

    say(NOON + 2 * MINUTE, temperature_celsius={3: 72})

    assert open_ones() == [("gpu-hot", "GPU 3 of gpu-001", "warning")]
    found = Finding.objects.get()
    assert "Must last: 120 s\nLimits set by: a pool" in told(found)
    assert "/cool" not in f"{told(found)} {steps(found)} {found.facts}"


def test_what_is_critical_by_a_pools_limits_is_told_sooner_also_while_it_is_being_confirmed(say, cluster):
    with_limits(cluster, "cool", "gpu-001", warn=70, critical=80, warn_after_s=600)
    say(NOON, temperature_celsius={3: 72, 4: 90})
    say(NOON + MINUTE, temperature_celsius={3: 85, 4: 90})
    assert open_ones() == [("gpu-hot", "GPU 4 of gpu-001", "critical")]

    say(NOON + 2 * MINUTE, temperature_celsius={3: 85, 4: 90})

    assert {subject for _, subject, _ in open_ones()} == {"GPU 3 of gpu-001", "GPU 4 of gpu-001"}


def test_what_is_critical_at_once_is_told_at_once_also_while_it_is_being_confirmed(say, cluster):
    with_limits(cluster, "cool", "gpu-001", warn=70, critical=80, warn_after_s=600, critical_after_s=0)
    say(NOON, temperature_celsius={3: 72})

    say(NOON + MINUTE, temperature_celsius={3: 85})

    assert open_ones() == [("gpu-hot", "GPU 3 of gpu-001", "critical")]


def test_what_is_no_longer_critical_is_confirmed_as_a_warning_is(say, cluster):
    with_limits(cluster, "cool", "gpu-001", warn=70, critical=80, warn_after_s=300, critical_after_s=120)
    say(NOON, temperature_celsius={3: 85})
    say(NOON + MINUTE, temperature_celsius={3: 72})

    say(NOON + 3 * MINUTE, temperature_celsius={3: 72})
    assert open_ones() == []

    say(NOON + 5 * MINUTE, temperature_celsius={3: 72})
    assert open_ones() == [("gpu-hot", "GPU 3 of gpu-001", "warning")]


def test_what_comes_back_soon_is_the_same_finding_however_long_it_must_last(say, cluster):
    with_limits(cluster, "cool", "gpu-001", warn=70, warn_after_s=7200)
    for minutes, celsius in ((0, 72), (120, 72), (121, 60), (131, 72), (251, 72)):
        say(NOON + minutes * MINUTE, temperature_celsius={3: celsius})

    assert open_ones() == [("gpu-hot", "GPU 3 of gpu-001", "warning")]
    assert [row.times for row in Finding.objects.all()] == [2]


@pytest.mark.parametrize(("before", "after"), [(3600, 60), (60, 600)])
def test_what_is_being_confirmed_when_limits_change_opens_by_the_new_ones(say, cluster, before, after):
    row = with_limits(cluster, "cool", "gpu-001", warn=70, warn_after_s=before, critical_after_s=0)
    say(NOON, temperature_celsius={3: 72})
    PoolLimits.objects.filter(pk=row.pk).update(warn_after_s=after)

    say(NOON + timedelta(seconds=after) - MINUTE / 2, temperature_celsius={3: 72})
    assert open_ones() == []

    say(NOON + timedelta(seconds=after), temperature_celsius={3: 72})
    assert open_ones() == [("gpu-hot", "GPU 3 of gpu-001", "warning")]


def test_a_link_brought_up_anew_waits_no_longer_than_a_warning_whatever_was_set_before(say, cluster):
    given = {"rule": "gpu-nvlink-errors", "warn": 100, "warn_after_s": 60, "critical_after_s": 86_400}
    with_limits(cluster, "links", "gpu-001", **given)
    say(NOON, nvlink_recoveries={3: 0})
    say(NOON + MINUTE, nvlink_recoveries={3: 1})

    say(NOON + 2 * MINUTE, nvlink_recoveries={3: 1})

    assert open_ones() == [("gpu-nvlink-errors", "GPU 3 of gpu-001", "critical")]


def test_limits_of_a_pool_that_a_node_is_not_in_are_not_its(say, cluster):
    with_limits(cluster, "cool", warn=70, critical=80)
    say(NOON, temperature_celsius={3: 72})

    say(NOON + 5 * MINUTE, temperature_celsius={3: 72})

    assert open_ones() == []


def test_laxer_limits_silence_what_the_rules_own_would_tell(say, cluster):
    with_limits(cluster, "warm", "gpu-001", warn=90, critical=None)
    say(NOON, temperature_celsius={3: 88})

    say(NOON + 10 * MINUTE, temperature_celsius={3: 88})

    assert open_ones() == []


def test_of_several_pools_the_strictest_holds(say, cluster):
    with_limits(cluster, "warm", "gpu-001", warn=90, critical=None)
    with_limits(cluster, "cool", "gpu-001", warn=70, critical=None)
    say(NOON, temperature_celsius={3: 72})

    say(NOON + 2 * MINUTE, temperature_celsius={3: 72})

    assert "It has 70 °C or more." in told(Finding.objects.open().get())


def test_the_limits_of_one_pool_take_no_critical_of_another_away(say, cluster):
    with_limits(cluster, "cool", "gpu-001", warn=70, critical=None)
    with_limits(cluster, "warm", "gpu-001", warn=80, critical=90)
    say(NOON, temperature_celsius={2: 72, 3: 92})

    say(NOON + 2 * MINUTE, temperature_celsius={2: 72, 3: 92})

    texts = {found.severity: told(found) for found in Finding.objects.open()}
    assert "It has 90 °C or more." in texts["critical"]
    assert "Must last: 60 s" in texts["critical"]
    assert "It has 70 °C or more." in texts["warning"]
    assert "Must last: 120 s" in texts["warning"]


def test_what_the_last_xid_hides_is_found_where_its_exporter_counts(say, cluster):
    """A worse Xid does not hide behind 45 (R73.3)."""
    say(NOON, xid={2: 45}, xids_counted={2: 3}, parts={2: {"xids_counted": {"45": 3.0, "79": 1.0}}})

    assert open_ones() == [("gpu-xid", "GPU 2 of gpu-001", "critical")]


def test_dcgms_health_check_is_listed_under_what_explains_it(say, cluster):
    failing = {"dcgm_health": {3: 20.0}, "parts": {3: {"dcgm_health": {"ALL": 20.0}}}}
    say(NOON, **failing)
    say(NOON + MINUTE, **failing)
    assert open_ones() == [("gpu-dcgm-health", "GPU 3 of gpu-001", "critical")]

    say(NOON + 2 * MINUTE, xid={3: 79}, **failing)

    assert Finding.objects.get(rule="gpu-dcgm-health").parent.rule == "gpu-xid"


def test_a_gpu_that_its_exporter_calls_unhealthy_is_found_until_it_is_called_well(say, cluster):
    well = dict.fromkeys(range(8), 1.0)
    say.only(NOON, called_healthy={**well, 3: 0.0})
    say.only(NOON + MINUTE, called_healthy={**well, 3: 0.0})
    assert open_ones() == [("gpu-called-unhealthy", "GPU 3 of gpu-001", "critical")]

    say.only(NOON + 2 * MINUTE, called_healthy={place: 1.0 for place in range(8) if place != 3})
    say.only(NOON + 4 * MINUTE, temperature_celsius=dict.fromkeys(range(8), 60.0))
    assert open_ones() == [("gpu-called-unhealthy", "GPU 3 of gpu-001", "critical")]
    say.only(NOON + 5 * MINUTE, called_healthy=well)

    assert open_ones() == []


NONE = dict.fromkeys(range(8), 0.0)


def test_a_row_that_is_remapped_tells_of_an_error_that_nobody_counts(say, cluster):
    say.only(NOON, rows_remapped_uncorrected=NONE | {2: 4.0})
    assert open_ones() == []

    say.only(NOON + MINUTE, rows_remapped_uncorrected=NONE | {2: 4.0, 3: 1.0})
    assert open_ones() == [("gpu-ecc-uncorrected", "GPU 3 of gpu-001", "warning")]
    say.only(NOON + 2 * MINUTE, rows_remapped_uncorrected=NONE | {2: 4.0, 3: 1.0}, xid=NONE | {3: 63.0})

    assert Finding.objects.get(rule="gpu-ecc-uncorrected").parent.rule == "gpu-xid"


def test_errors_that_are_not_counted_any_more_are_not_over_by_rows_that_are(say, cluster):
    say.only(NOON, ecc_uncorrected=NONE | {3: 2.0}, rows_remapped_uncorrected=NONE | {3: 1.0})

    for minutes in (1, 2, 3):
        say.only(NOON + minutes * MINUTE, rows_remapped_uncorrected=NONE | {3: 1.0})

    assert open_ones() == [("gpu-ecc-uncorrected", "GPU 3 of gpu-001", "critical")]


def test_nor_are_they_where_it_is_forgotten_that_they_were_counted(say, cluster):
    say.only(NOON, ecc_uncorrected=NONE | {3: 2.0}, rows_remapped_uncorrected=NONE | {3: 1.0})
    say.snapshot = TelemetrySnapshot(NOON.timestamp(), DEVICES)

    for minutes in (1, 2, 3):
        say.only(NOON + minutes * MINUTE, ecc_uncorrected={}, rows_remapped_uncorrected=NONE | {3: 1.0})
    assert open_ones() == [("gpu-ecc-uncorrected", "GPU 3 of gpu-001", "critical")]

    say.only(NOON + 4 * MINUTE, ecc_uncorrected=NONE, rows_remapped_uncorrected=NONE | {3: 1.0})
    assert open_ones() == []


def test_a_gpu_is_held_against_what_the_others_send_now(say, cluster):
    a_pod(Node.objects.get(), "train", gpus=8)
    busy = dict.fromkeys(range(8), 0.9)
    say.only(NOON, gpu_utilisation_ratio=busy, nvlink_mib_per_s=dict.fromkeys(range(8), 1000.0))

    for minutes in (10, 21, 22):
        say.only(NOON + minutes * MINUTE, gpu_utilisation_ratio=busy, nvlink_mib_per_s={3: 10.0})

    assert open_ones() == []


def test_what_a_gpu_is_held_against_has_telemetry_before_it_is_well(say, cluster):
    a_pod(Node.objects.get(), "train", gpus=8)
    busy = dict.fromkeys(range(8), 0.9)
    quiet = [("gpu-nvlink-quiet", "GPU 3 of gpu-001", "warning")]
    for minutes in (0, 11):
        say.only(
            NOON + minutes * MINUTE, gpu_utilisation_ratio=busy,
            nvlink_mib_per_s=dict.fromkeys(range(8), 1000.0) | {3: 10.0},
        )  # fmt: skip
    assert open_ones() == quiet

    say.only(NOON + 20 * MINUTE, gpu_utilisation_ratio=busy, nvlink_mib_per_s={3: 10.0})
    assert open_ones() == quiet
    say.only(NOON + 21 * MINUTE, gpu_utilisation_ratio=busy, nvlink_mib_per_s=dict.fromkeys(range(8), 1000.0))
    assert open_ones() == []


def test_a_node_that_is_gone_takes_its_findings_along_though_nobody_listens(say, cluster):
    node = Node.objects.get()
    for minutes in (0, 6):
        say(NOON + minutes * MINUTE, temperature_celsius={3: 90.0})
    silent = a_finding(cluster, f"node {node.name}", node=node, rule="exporter-silent", fingerprint="silent")
    node.delete()

    looked(cluster, NOON + 20 * MINUTE)

    assert open_ones() == []
    assert Finding.objects.get(pk=silent.pk).resolved_reason == ""
