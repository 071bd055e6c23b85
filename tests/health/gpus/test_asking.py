import math

from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from health.gpus.columns import COLUMNS, ORDER_TITLES, ORDERS, READ, USUAL
from health.gpus.gpu_filter import LONGEST, NUMBER, OF_A_METRIC, PARTS, GpuFilter, number
from health.telemetry.metrics import METRICS


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


def test_each_metric_there_is_is_in_a_column_and_can_be_asked_about():
    assert set(METRICS) == set(READ) | {key for column in COLUMNS.values() for key in column.metrics}
    for key in METRICS:
        assert key in GpuFilter(metric=key).metrics
        assert key in GpuFilter(ordering=f"-{key}", columns=("uuid",)).metrics or key in READ
    assert GpuFilter().metrics == READ


def test_the_column_of_the_metric_that_is_asked_about_is_shown():
    keys = [column.key for column in read("metric=ecc_corrected&column=uuid").shown]

    assert keys == ["node", "gpu", "uuid", "ecc_corrected"]


def test_how_it_stands_with_a_metric_says_nothing_without_one_and_goes_with_it():
    assert read("reading=zero&at_least=3") == GpuFilter()
    asked = read("metric=xid&reading=stale&at_least=3")
    assert (asked.query(), asked.active) == ("metric=xid&reading=stale&at_least=3", ["metric"])
    assert asked.without("metric") == GpuFilter()


@given(st.text(max_size=30) | st.from_regex(NUMBER, fullmatch=True))
def test_a_number_is_finite_and_of_ascii_digits(text):
    read_as = number(text)

    if read_as is not None:
        assert math.isfinite(read_as)
        assert text.isascii()
    assert number("1e5") is number("nan") is number("inf") is number("1_0") is number("٣") is None
    assert number("-0.5") == -0.5


def test_every_order_has_a_title_and_a_head_that_sorts():
    assert set(ORDER_TITLES) == set(ORDERS)
    for column in COLUMNS.values():
        if column.can_order:
            first = GpuFilter(ordering="-nothing").ordered_by(column)
            assert first.ordering in ORDERS
            assert {first.ordering, first.ordered_by(column).ordering} == {column.key, f"-{column.key}"}


@given(
    st.fixed_dictionaries({}, optional={name: st.text(max_size=300) for name in (*PARTS, *OF_A_METRIC)}),
    st.sampled_from(ORDERS),
    st.lists(st.sampled_from(sorted(COLUMNS))),
)
def test_an_address_says_what_it_was_made_of(given_parts, ordering, columns):
    query = QueryDict(mutable=True)
    query.update({**given_parts, "ordering": ordering})
    query.setlist("column", columns)

    wanted = GpuFilter.read(query)

    assert read(wanted.query()) == wanted
