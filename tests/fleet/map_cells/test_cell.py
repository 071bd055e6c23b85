from hypothesis import given
from hypothesis import strategies as st

from fleet.map_cells.cell import (
    CRITICAL,
    HAS_PARTS,
    HELD,
    MOST_GPUS,
    CellColumns,
    GpuState,
    GpuTaken,
    NodeCells,
    cells_of,
    possible,
)
from fleet.states.node import NodeState
from tests.fleet.map_rasters import STATE_BITS, gpus_of

NUMBERS = st.integers(0, 300)
COUNTS = st.tuples(NUMBERS, NUMBERS, NUMBERS)
CELLS = st.builds(
    cells_of,
    st.sampled_from(NodeState).map(int),
    is_held=st.booleans(),
    is_critical=st.booleans(),
    is_away=st.booleans(),
    whole=COUNTS,
    parts=COUNTS,
    physical=st.none() | NUMBERS,
)


def a_node(whole=(0, 0, 0), parts=(0, 0, 0), physical=None, **given) -> NodeCells:
    given = {"is_held": False, "is_critical": False, "is_away": False} | given
    return cells_of(NodeState.READY, whole=whole, parts=parts, physical=physical, **given)


def test_what_is_taken_comes_first_then_what_is_free_then_what_is_missing():
    drawn = a_node((3, 6, 8), physical=8)

    assert gpus_of(drawn.gpus) == [
        *[(GpuState.WHOLE, GpuTaken.ALL)] * 3,
        *[(GpuState.WHOLE, GpuTaken.NONE)] * 3,
        *[(GpuState.MISSING, GpuTaken.NONE)] * 2,
    ]


def test_what_a_pod_holds_and_the_node_lost_is_missing_and_not_allocated():
    assert gpus_of(a_node((8, 6, 8)).gpus).count((GpuState.WHOLE, GpuTaken.ALL)) == 6


def test_what_the_mig_manager_works_on_is_away_and_not_missing():
    assert gpus_of(a_node((0, 7, 8), is_away=True).gpus)[7] == (GpuState.AWAY, GpuTaken.NONE)
    assert gpus_of(a_node(parts=(0, 0, 7), physical=1, is_away=True).gpus) == [(GpuState.PARTS_AWAY, GpuTaken.NONE)]


def test_gpus_that_are_cut_are_filled_as_far_as_their_slices_are_taken():
    drawn = a_node((4, 4, 4), parts=(10, 28, 28), physical=8)

    assert gpus_of(drawn.gpus)[4:] == [
        (GpuState.PARTS, GpuTaken.ALL),
        (GpuState.PARTS, GpuTaken.SOME),
        (GpuState.PARTS, GpuTaken.NONE),
        (GpuState.PARTS, GpuTaken.NONE),
    ]
    assert drawn.parts == (10, 28, 28)
    assert drawn.state & HAS_PARTS


def test_a_gpu_whose_slices_are_lost_says_so():
    assert gpus_of(a_node(parts=(0, 24, 28), physical=4).gpus)[3] == (GpuState.PARTS_MISSING, GpuTaken.NONE)


def test_a_gpu_of_which_nothing_is_offered_is_not_free():
    assert gpus_of(a_node(physical=2).gpus) == [(GpuState.NOT_OFFERED, GpuTaken.NONE)] * 2


def test_a_held_node_says_so_beside_its_state():
    assert a_node(is_held=True).state == NodeState.READY | HELD


def test_a_critical_finding_is_said_beside_its_state():
    assert a_node(is_critical=True).state == NodeState.READY | CRITICAL


@given(st.sampled_from(NodeState), st.booleans(), st.booleans(), COUNTS)
def test_what_is_said_beside_a_state_is_read_apart_from_it_and_from_each_other(state, is_held, is_critical, parts):
    drawn = cells_of(
        state, is_held=is_held, is_critical=is_critical, is_away=False, whole=(0, 8, 8), parts=parts, physical=9
    )

    said = drawn.state
    assert said < 0x80
    assert (said & STATE_BITS, bool(said & HELD), bool(said & CRITICAL)) == (state, is_held, is_critical)
    assert bool(said & HAS_PARTS) is (drawn.parts is not None)


def test_no_node_takes_more_than_a_byte_for_its_number_of_gpus():
    assert len(a_node((0, 10_000, 10_000), physical=10**9).gpus) == 255


@given(COUNTS)
def test_no_more_is_taken_than_usable_and_no_more_usable_than_there(counts):
    taken, usable, expected = possible(counts)

    assert 0 <= taken <= usable <= expected == counts[2]


@given(st.lists(CELLS, max_size=20))
def test_columns_are_read_as_they_were_written(nodes):
    columns = CellColumns.of(nodes)

    assert list(columns.nodes()) == nodes
    assert list(CellColumns.joined([CellColumns.of(nodes[:3]), CellColumns.of(nodes[3:])]).nodes()) == nodes
    assert len(bytes(columns)) <= sum(2 + len(node.gpus) + 6 for node in nodes)


@given(CELLS)
def test_a_node_alone_is_as_long_as_it_says(node):
    assert node.alone[0] == node.state
    assert node.alone[2 : 2 + node.alone[1]] == node.gpus


def test_a_node_that_says_it_has_two_billion_gpus_is_drawn_like_a_full_one():
    """It costs only itself: what is made of a number is bounded before, not after."""
    most = 2**31 - 1

    drawn = a_node((most // 2, most, most), parts=(most, most, most), physical=most)

    assert gpus_of(drawn.gpus) == [(GpuState.WHOLE, GpuTaken.ALL)] * MOST_GPUS
    assert next(CellColumns.of([drawn]).nodes()) == drawn
