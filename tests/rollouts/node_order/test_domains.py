"""Who may go together: no failure domain ever has more out than its budget, and whoever waits is told by which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.failure_domains import UNBOUND, Allowance, Budgets, Domain, DomainKind
from rollouts.node_order.node_selection import next_wave, waves

A, B = Domain(DomainKind.ZONE, "a"), Domain(DomainKind.RACK, "b")
SERVICE = Domain(DomainKind.SERVICE, "Deployment team-a/chat")
NODES = [f"n{number}" for number in range(8)]


def zone(most: int, *out: str) -> Allowance:
    return Allowance("zone a", most, {name: f"{name} (plan-3)" for name in out})


BUDGETS = st.builds(
    lambda where, most, out: Budgets(
        {
            domain: Allowance("x", most[n], {name: name for name in out if where[name][n]})
            for n, domain in enumerate((A, B))
        },
        {name: tuple(one for one, is_in in zip((A, B), where[name], strict=True) if is_in) for name in NODES},
    ),
    st.fixed_dictionaries({name: st.tuples(st.booleans(), st.booleans()) for name in NODES}),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sets(st.sampled_from(NODES)),
)


def is_over(budgets: Budgets, going: tuple[str, ...]) -> bool:
    """Whether those that go push a domain over its budget, or further over."""
    for domain, budget in budgets.of.items():
        more = {name for name in going if domain in budgets.domains[name]} - set(budget.out)
        if more and len(budget.out) + len(more) > budget.most:
            return True
    return False


@given(BUDGETS, st.permutations(NODES), st.integers(0, 8))
def test_no_domain_goes_over_its_budget_and_nobody_waits_who_need_not(budgets: Budgets, order, room: int):
    """Z15."""
    going = next_wave(order, room, budgets)

    assert len(going) <= room
    assert list(going) == [name for name in order if name in going]
    assert not is_over(budgets, going)
    if len(going) < room:
        left = [name for name in order if name not in going]
        assert all(is_over(budgets, (*going, name)) for name in left)


@given(BUDGETS, st.permutations(NODES))
def test_who_waits_alone_is_told_why_and_nobody_else_is(budgets: Budgets, order):
    waiting = budgets.waiting(order)

    assert set(waiting) == {name for name in order if is_over(budgets, (name,))}
    assert all(budgets.why_not((name,)) == waiting.get(name, "") for name in order)


@given(BUDGETS, st.lists(st.sampled_from(NODES), unique=True))
def test_a_wave_is_refused_exactly_when_a_domain_would_go_over_its_budget(budgets: Budgets, wave):
    assert bool(budgets.why_not(wave)) == is_over(budgets, tuple(wave))


@given(BUDGETS, st.permutations(NODES), st.integers(1, 8))
def test_a_preview_names_every_node_once(budgets: Budgets, order, at_once: int):
    found = waves(order, at_once, budgets)

    assert sorted(name for wave in found for name in wave) == sorted(order)


@given(BUDGETS, st.permutations(NODES), st.integers(1, 8))
def test_a_preview_shows_the_waves_that_the_engine_would_let_go(budgets: Budgets, order, at_once: int):
    left = list(order)
    for wave in waves(order, at_once, budgets):
        assert wave == (next_wave(left, at_once, budgets) or (left[0],))
        left = [name for name in left if name not in wave]


@given(BUDGETS, st.permutations(NODES), st.integers(1, 8), st.integers(0, 8))
def test_the_largest_wave_is_that_of_all_of_them(budgets: Budgets, order, at_once: int, number: int):
    those = order[:number]

    assert budgets.largest(those, at_once) == max(map(len, waves(those, at_once, budgets)), default=0)


@given(BUDGETS, st.permutations(NODES), st.integers(1, 8))
def test_so_it_is_where_a_domain_has_no_place_at_all(budgets: Budgets, order, at_once: int):
    shut = Budgets({**budgets.of, A: Allowance("x", 0)}, budgets.domains)

    assert shut.largest(order, at_once) == max(map(len, waves(order, at_once, shut)))


@pytest.mark.parametrize("most", [1, 3, 5_000])
def test_the_first_wave_tells_where_none_could_be_larger(monkeypatch, most: int):
    """A page that is asked for every five seconds by each of its viewers made thousands of waves to count one."""
    order = [f"n{number}" for number in range(5_000)]
    budgets = Budgets({A: zone(most)}, dict.fromkeys(order, (A,)))
    made: list[int] = []
    wave = Budgets._wave
    monkeypatch.setattr(Budgets, "_wave", lambda *given: made.append(1) or wave(*given))

    assert budgets.largest(order, 8) == min(most, 8)
    assert len(made) == 1


def test_five_thousand_nodes_of_one_domain_are_handed_out_in_no_time():
    """Each wave asked every node that was left: a preview of this size took most of a minute."""
    order = [f"n{number}" for number in range(5_000)]
    asked = []

    class Counted(Budgets):
        def _full(self, needs, taken):
            asked.append(needs)
            return super()._full(needs, taken)

    found = waves(order, 8, Counted({A: zone(1)}, dict.fromkeys(order, (A,))))

    assert [len(wave) for wave in found] == [1] * 5_000
    assert len(asked) <= 2 * len(order)


def test_who_is_out_already_goes_in_the_place_that_it_has():
    budgets = Budgets({A: zone(1, "n1")}, {"n1": (A,), "n2": (A,)})

    assert budgets.going(["n2", "n1"], 2) == ("n1",)


def test_the_sentence_has_the_numbers_and_who_has_the_places():
    budgets = Budgets({A: zone(2, "n1", "n3")}, {"n2": (A,)})

    assert budgets.waiting(["n2"]) == {
        "n2": "Zone a may have 2 nodes unavailable and has 2: n1 (plan-3), n3 (plan-3).",
    }


def test_the_last_ready_replica_of_a_service_stays():
    one = Allowance("Deployment team-a/chat", 0, is_last_replica=True)
    budgets = Budgets({SERVICE: one}, {"n2": (SERVICE,)})

    assert budgets.going(["n2"], 1) == ()
    assert budgets.why_not(["n2"]) == (
        "Deployment team-a/chat is Ready on n2 alone. The last Ready replica is not evicted."
    )


def test_without_budgets_the_room_is_all_there_is():
    assert next_wave(["a", "b", "c"], 2) == ("a", "b")
    assert UNBOUND.why_not(["a", "b"]) == ""
