from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from health.gpus.asking import LONGEST, PARTS, GpuFilter
from health.gpus.columns import COLUMNS, ORDER_TITLES, ORDERS, USUAL


def read(query: str) -> GpuFilter:
    return GpuFilter.read(QueryDict(query))


def test_what_there_is_not_is_the_usual():
    wanted = read("ordering=-secret&column=secret&colour=red&page=7")

    assert wanted == GpuFilter()
    assert wanted.query() == ""


def test_a_value_is_held_to_a_length():
    assert len(read(f"q={'x' * 10_000}").q) == LONGEST


def test_the_usual_columns_need_no_name():
    assert read("&".join(f"column={key}" for key in USUAL)).columns == ()
    assert [column.key for column in read("column=power&column=uuid").shown] == ["node", "gpu", "uuid", "power"]


def test_every_order_has_a_title_and_a_head_that_sorts():
    assert set(ORDER_TITLES) == set(ORDERS)
    for column in COLUMNS.values():
        if column.can_order:
            first = GpuFilter(ordering="-nothing").ordered_by(column)
            assert first.ordering in ORDERS
            assert {first.ordering, first.ordered_by(column).ordering} == {column.key, f"-{column.key}"}


@given(
    st.fixed_dictionaries({}, optional={name: st.text(max_size=300) for name in PARTS}),
    st.sampled_from(ORDERS),
    st.lists(st.sampled_from(sorted(COLUMNS))),
)
def test_an_address_says_what_it_was_made_of(given_parts, ordering, columns):
    query = QueryDict(mutable=True)
    query.update({**given_parts, "ordering": ordering})
    query.setlist("column", columns)

    wanted = GpuFilter.read(query)

    assert read(wanted.query()) == wanted
