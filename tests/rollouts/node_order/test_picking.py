from hypothesis import given
from hypothesis import strategies as st

from operations.failure_domains import UNBOUND
from operations.tenants.disruption_cost import Harm, Job
from rollouts.node_order.node_selection import (
    FACTORS,
    AtOnce,
    Candidate,
    bound_on_failure_rate,
    in_order,
    next_wave,
    representatives,
    uncovered,
    waves,
)

FACTS = st.fixed_dictionaries({factor: st.sampled_from("abc") for factor in [*FACTORS][:3]})
CANDIDATES = st.lists(st.tuples(FACTS, st.booleans()), max_size=9).map(
    lambda rows: [
        Candidate(f"uid-{number}", f"node-{number}", facts, is_fit=is_fit)
        for number, (facts, is_fit) in enumerate(rows)
    ]
)


def a_candidate(name: str, *, is_fit: bool = True, **facts: str) -> Candidate:
    return Candidate(f"uid-of-{name}", name, facts, is_fit=is_fit)


def cohorts_of(chosen: list[Candidate]) -> set[tuple[str, str]]:
    return {cohort for one in chosen for cohort in one.cohorts}


@given(CANDIDATES, st.integers(0, 10))
def test_never_takes_more_than_asked_nor_one_twice(candidates: list[Candidate], count: int):
    chosen = representatives(candidates, count)

    assert len(chosen) == min(count, len(candidates))
    assert len({one.uid for one in chosen}) == len(chosen)


@given(CANDIDATES, st.integers(0, 10), st.randoms(use_true_random=False))
def test_takes_the_same_nodes_in_whatever_order_they_come(candidates: list[Candidate], count: int, random):
    shuffled = random.sample(candidates, len(candidates))

    assert representatives(shuffled, count) == representatives(candidates, count)


@given(CANDIDATES, st.integers(1, 10))
def test_each_choice_adds_as_many_cohorts_as_any_other_fit_node_would(candidates: list[Candidate], count: int):
    chosen = representatives(candidates, count)

    for number, one in enumerate(chosen):
        met = cohorts_of(chosen[:number])
        rivals = [other for other in candidates if other not in chosen[:number] and other.is_fit >= one.is_fit]
        assert len(one.cohorts - met) == max(len(rival.cohorts - met) for rival in rivals)


@given(CANDIDATES, st.integers(0, 10))
def test_takes_a_broken_node_only_when_no_fit_one_is_left(candidates: list[Candidate], count: int):
    chosen = representatives(candidates, count)

    if any(not one.is_fit for one in chosen):
        assert all(one in chosen for one in candidates if one.is_fit)


@given(CANDIDATES, st.integers(0, 10))
def test_what_is_uncovered_is_what_the_others_have_and_the_canary_has_not(candidates: list[Candidate], count: int):
    canary = representatives(candidates, count)
    others = [one for one in candidates if one not in canary]

    missing = uncovered(canary, others)

    assert set(missing) == cohorts_of(others) - cohorts_of(canary)
    assert all(number == sum(cohort in one.cohorts for one in others) for cohort, number in missing.items())


@given(CANDIDATES, st.integers(0, 10))
def test_is_in_the_same_order_as_one_after_another(candidates: list[Candidate], count: int):
    chosen = representatives(candidates, count)

    assert all(representatives(candidates, fewer) == chosen[:fewer] for fewer in range(len(chosen)))


def test_a_large_canary_of_nodes_that_are_alike_is_chosen_in_no_time():
    """Every node that was left was looked at for each that was chosen: 500 of 5,000 took a minute."""
    looked = []

    class Counted(Candidate):
        @property
        def cohorts(self) -> frozenset[tuple[str, str]]:
            looked.append(self.name)
            return frozenset({("kernel", self.name[-1])})

    candidates = [Counted(f"uid-{number}", f"node-{number:04}", {}) for number in range(2_000)]

    assert len(representatives(candidates, 500)) == 500
    assert len(looked) < 20 * len(candidates)


def test_two_canaries_meet_both_kernels_however_rare_one_is():
    common = [a_candidate(f"node-{number}", kernel="5.15") for number in range(20)]
    rare = a_candidate("node-99", kernel="6.8")

    chosen = representatives([*common, rare], 2)

    assert rare in chosen


def test_one_canary_is_what_most_others_are_like():
    odd = a_candidate("gpu-dra-001", gpu_layout="named by DRA", pool="")
    pooled = [a_candidate(f"gpu-h100-{number}", gpu_layout="whole GPUs", pool="training") for number in range(3)]

    assert [one.name for one in representatives([odd, *pooled], 1)] == ["gpu-h100-0"]
    assert odd in representatives([odd, *pooled], 2)


def test_a_zone_is_through_before_the_next_one_is_touched():
    candidates = [
        a_candidate("c", zone="2"),
        a_candidate("b", zone="1"),
        a_candidate("a", zone="1", is_fit=False),
        a_candidate("d", zone="1"),
    ]

    assert [one.name for one in in_order(candidates)] == ["b", "d", "c", "a"]


def test_no_failure_among_few_nodes_proves_little():
    assert bound_on_failure_rate(0) == 1.0
    assert round(bound_on_failure_rate(5), 2) == 0.45
    assert bound_on_failure_rate(58) > 0.05 > bound_on_failure_rate(59)


def test_failures_widen_the_bound_as_clopper_and_pearson_have_it():
    assert bound_on_failure_rate(1, failed=1) == 1.0
    assert round(bound_on_failure_rate(10, failed=1), 4) == 0.3942
    assert round(bound_on_failure_rate(20, failed=2), 4) == 0.2826
    assert round(bound_on_failure_rate(5_000, failed=300), 4) == 0.0658  # the coefficients exceed any float


@given(st.lists(st.text(), unique=True), st.integers(0, 9))
def test_waves_are_all_of_them_in_their_order(targets: list[str], at_once: int):
    found = waves(targets, at_once)

    assert [name for wave in found for name in wave] == targets
    assert all(len(wave) == max(1, at_once) for wave in found[:-1])
    assert all(next_wave(wave, at_once) == wave for wave in found if at_once)
    assert AtOnce(at_once, "", targets, at_once, UNBOUND).first_wave == next(iter(found), ())


def test_nodes_of_one_job_go_one_after_another_whatever_their_zones():
    """Z14: so that one wave has them, where it has the room."""
    big, small = Job("MPIJob team-a/big", 16, 90.0, 2), Job("MPIJob team-a/small", 16, 30.0, 2)

    def runs(name: str, zone: str, job: Job) -> Candidate:
        return Candidate(f"uid-of-{name}", name, {"zone": zone}, harm=Harm((job,), pods=1))

    candidates = [runs("a", "1", big), runs("b", "1", small), runs("c", "2", big), runs("d", "2", small)]

    assert [one.name for one in in_order(candidates)] == ["b", "d", "a", "c"]


def test_a_node_with_tenants_is_a_better_canary_than_an_idle_one_of_its_kind():
    """An idle canary proves nothing (Z27)."""
    idle = Candidate("uid-1", "a", {"kernel": "5.15"})
    busy = Candidate("uid-2", "b", {"kernel": "5.15"}, harm=Harm(restarts=1, pods=1))
    busier = Candidate("uid-3", "c", {"kernel": "5.15"}, harm=Harm(restarts=2, pods=2))

    training = Candidate("uid-0", "a0", {"kernel": "5.15"}, harm=Harm((Job("MPIJob team-a/big", 8, 1.0, 1),), pods=1))

    assert representatives([idle, busier, busy], 2) == [busy, busier]
    assert representatives([training, idle], 1) == [idle], "no job ends where a test Job proves as much"


def test_a_kind_of_node_that_only_an_idle_one_has_is_met_all_the_same():
    busy = [Candidate(f"uid-{number}", f"a{number}", {"kernel": "5.15"}, harm=Harm(pods=1)) for number in range(3)]
    idle = Candidate("uid-9", "b", {"kernel": "6.8"})

    assert idle in representatives([*busy, idle], 2)


def test_a_broken_node_goes_last_though_it_is_idle():
    busy = Candidate("uid-1", "busy", {}, harm=Harm((Job("Job team-a/x", 8, 900.0, 1),), pods=1))
    broken = Candidate("uid-2", "broken", {}, is_fit=False)

    assert [one.name for one in in_order([broken, busy])] == ["busy", "broken"]
