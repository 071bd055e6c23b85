"""What DCGM's exporter counts and checks by itself, where somebody switched it on: Xids, clocks, health."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.rules.base import Severity
from health.rules.gpus.base import GpuFacts, XidSeen
from health.rules.gpus.dcgm_health import DcgmHealth
from health.rules.gpus.throttled import Throttled
from health.rules.gpus.xid import LastXid
from tests.health.rules.test_gpus import WELL, a_frame
from tests.make import NOON
from tests.reports import causes, told

BLANK = 9223372036854775794.0  # DCGM's word for a value it does not have


def counted(**numbers: float) -> GpuFacts:
    return replace(WELL, parts={"xids_counted": {key.removeprefix("x"): number for key, number in numbers.items()}})


def clocks(*, bits: float = 0.0, **events: float) -> GpuFacts:
    return replace(WELL, now={**WELL.now, "clock_reasons": bits}, parts={"clock_events": events})


def health(worst: float, **watches: float) -> GpuFacts:
    return replace(WELL, now={**WELL.now, "dcgm_health": worst}, parts={"dcgm_health": watches} if watches else {})


def test_an_xid_that_the_last_one_hides_is_found_by_the_count():
    """Z22."""
    gpu = replace(counted(x79=1, x45=3), xid=XidSeen(45, NOON))

    wrong = LastXid().evaluate(gpu)

    assert wrong.severity == Severity.CRITICAL
    assert wrong.title == "GPU 3 of gpu-1: Xid 79 (GPU has fallen off the bus)"
    assert wrong.summary == "Recorded at least once within the window of its exporter."
    assert wrong.facts["counted"] == {"45": 3, "79": 1}


def test_many_of_one_are_one_burst_whose_number_counts_on():
    ten, fifty = (replace(counted(x31=number), xid=XidSeen(31, NOON)) for number in (10, 50))

    assert "A burst: 10 times or more" in told(LastXid().evaluate(ten))
    assert LastXid().evaluate(ten).fingerprint == LastXid().evaluate(fifty).fingerprint
    assert "A burst" not in told(LastXid().evaluate(replace(counted(x31=9), xid=XidSeen(31, NOON))))


def test_an_applications_error_that_comes_again_is_not_over():
    long_ago = XidSeen(31, NOON - timedelta(hours=3))

    assert LastXid().evaluate(replace(WELL, xid=long_ago)) is None
    assert LastXid().evaluate(replace(counted(x31=1), xid=long_ago)) is not None


@pytest.mark.parametrize("parts", [{}, {"x45": 9}, {"x0": 4}, {"xsome": 4}, {"x79": 0}, {"x79": BLANK}, {"x99999": 1}])
def test_what_is_no_count_of_a_bad_xid_says_nothing(parts):
    assert LastXid().evaluate(counted(**parts)) is None


def test_it_suspects_whoever_counted_any():
    assert list(LastXid().suspects(a_frame("xids_counted", 0, 2, 0, 0))) == [1]


@pytest.mark.parametrize(
    ("bits", "says"),
    [
        (0x8, "Its hardware lowers its clocks."),
        (0x20, "It is too hot."),
        (0x40, "It is too hot."),
        (0x80, "power brake"),
        (0x48, "It is too hot. Its hardware lowers its clocks."),
    ],
)
def test_a_gpu_that_is_slowed_down_now_says_by_what(bits, says):
    assert says in causes(Throttled().evaluate(clocks(bits=bits)))
    assert list(Throttled().suspects(a_frame("clock_reasons", 0, bits, 1, 4))) == [1]


@pytest.mark.parametrize("bits", [0, 0x1, 0x2, 0x4, 0x10, 0x100, BLANK, -1])
def test_being_idle_capped_or_set_is_no_fault(bits):
    """Z28."""
    assert Throttled().evaluate(clocks(bits=bits)) is None
    assert list(Throttled().suspects(a_frame("clock_reasons", bits, bits))) == []


def test_what_the_exporter_counted_of_late_is_said_by_reason():
    wrong = Throttled().evaluate(clocks(hw_power_brake=12, hw_thermal=1))

    assert wrong.causes == ("It is too hot.", "Its board is at a limit (power brake, supply).")
    assert wrong.facts["clock_events:hw_power_brake"] == 12
    assert Throttled().evaluate(clocks(power_cap=300, gpu_idle=5)) is None


@pytest.mark.parametrize(
    ("gpu", "severity", "says"),
    [
        (health(20, PCIE=20, MEM=10), Severity.CRITICAL, "The check of PCIE fails."),
        (health(10, THERMAL=10), Severity.WARNING, "The check of THERMAL warns."),
        (health(20, ALL=20), Severity.CRITICAL, "check of the GPU as a whole fails."),
        (health(20), Severity.CRITICAL, "The check of the GPU fails."),
        (health(BLANK, NVLINK=BLANK, MEM=20), Severity.CRITICAL, "check of MEM fails."),
    ],
)
def test_what_dcgm_calls_unhealthy_is_told_by_what_it_watches(gpu, severity, says):
    wrong = DcgmHealth().evaluate(gpu)

    assert wrong.severity == severity
    assert says in told(wrong)


@pytest.mark.parametrize("worst", [0, BLANK])
def test_a_check_that_passes_or_that_nobody_made_says_nothing(worst):
    assert DcgmHealth().evaluate(health(worst)) is None
    assert DcgmHealth().evaluate(WELL) is None


@given(
    st.dictionaries(st.text(max_size=8), st.floats(allow_nan=False), max_size=6),
    st.floats(allow_nan=False),
)
def test_whatever_an_exporter_says_breaks_no_rule(parts, value):
    gpu = replace(
        WELL,
        now={"clock_reasons": value, "dcgm_health": value, "clock_events": value, "xids_counted": value},
        parts={"clock_events": parts, "dcgm_health": parts, "xids_counted": parts},
    )

    for rule in (LastXid(), Throttled(), DcgmHealth()):
        wrong = rule.evaluate(gpu)
        assert wrong is None or (wrong.title and len(wrong.fingerprint) < 1_200)
