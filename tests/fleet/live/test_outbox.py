from hypothesis import given
from hypothesis import strategies as st

from fleet.live.outbox import Outbox, merge_changes


def a_message(seq: int, *nodes, kinds=("nodes",), **given):
    return {"type": "cluster.changed", "seq": seq, "prev": seq - 1, "nodes": list(nodes), "kinds": list(kinds), **given}


def test_two_changes_become_one_with_the_later_state_of_each_node():
    folded = merge_changes(a_message(7, [1, 0], [2, 0]), a_message(8, [2, 5], kinds=["pods"]))

    assert folded["seq"] == 8
    assert folded["prev"] == 6
    assert sorted(folded["nodes"]) == [[1, 0], [2, 5]]
    assert folded["kinds"] == ["nodes", "pods"]


def test_too_many_nodes_are_said_to_be_all():
    folded = merge_changes(
        a_message(1, *[[n, 0] for n in range(1500)]), a_message(2, *[[n, 0] for n in range(1500, 3000)])
    )

    assert folded["all"] is True
    assert folded["nodes"] == []


def test_folding_does_not_hide_that_one_in_between_was_lost():
    """A page at 4 takes that for a gap, and fetches what is of other kinds, too."""
    folded = merge_changes(a_message(5, [1, 0]), a_message(7, [2, 0]))

    assert (folded["prev"], folded["seq"], folded["all"], folded["nodes"]) == (6, 7, True, [])


def test_folding_does_not_hide_a_lost_flush_behind_a_finding_that_has_its_number():
    folded = merge_changes(a_message(5), a_message(6, prev=6, kinds=["findings"]))

    assert (folded["prev"], folded["seq"]) == (6, 6)


def test_all_stays_all():
    assert merge_changes(a_message(1, all=True), a_message(2, [1, 0]))["all"] is True


def test_that_the_map_is_laid_out_anew_is_not_lost():
    assert merge_changes(a_message(1, index=True), a_message(2))["index"] is True


def test_what_was_taken_is_gone():
    outbox = Outbox()
    outbox.put("cluster-1", a_message(1))

    taken = outbox.take()

    assert len(taken) == 1
    assert not outbox


@given(st.integers(min_value=2, max_value=40), st.data())
def test_no_gap_appears_whenever_a_slow_browser_takes(changes, data):
    """Whatever was folded, what is taken next begins where the last taken ended."""
    outbox, known = Outbox(), 0
    for seq in range(1, changes + 1):
        outbox.put("cluster-1", a_message(seq, [seq, 0]))
        if data.draw(st.booleans()):
            (message,) = outbox.take()
            assert message["prev"] == known
            known = message["seq"]

    for message in outbox.take():
        assert message["prev"] == known
        known = message["seq"]

    assert known == changes
