import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.telemetry.promql import (
    KEYS,
    MATCHERS_CHARS,
    BadMatchers,
    Matchers,
    devices,
    doubled,
    exploding,
    newest_values,
    samples,
    times,
    values,
)

EU = Matchers('cluster="eu-1"')


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", ""),
        ('cluster="eu-1"', 'cluster="eu-1"'),
        ('{cluster="eu-1"}', 'cluster="eu-1"'),
        (' cluster = "eu-1" , job=~"dcgm.*", ', 'cluster="eu-1",job=~"dcgm.*"'),
        ('a!="b",c!~"d|e"', 'a!="b",c!~"d|e"'),
    ],
)
def test_keeps_label_matchers_in_one_spelling(given, kept):
    assert Matchers.read(given).text == kept


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("eu-1", "“eu-1” is not a label matcher"),
        ("cluster=eu-1", "” is not a label matcher"),
        ('cluster="eu-1"} or vector(1) #', "” is not a label matcher"),
        ('cluster="a\\"b"', "” is not a label matcher"),
        ('__name__="up"', "Quarterdeck sets __name__ itself"),
        ('job=~"("', "” is not a regular expression"),
        ('a="' + "x" * MATCHERS_CHARS + '"', "at most 500 characters"),
        (",".join(f'l{n}="v"' for n in range(11)), "At most 10"),
    ],
)
def test_refuses_what_is_no_list_of_matchers(given, named):
    with pytest.raises(BadMatchers, match=named.replace("(", r"\(")):
        Matchers.read(given)


@given(st.text(max_size=600))
def test_reads_any_text_or_refuses_it(text):
    try:
        read = Matchers.read(text)
    except BadMatchers:
        return

    assert Matchers.read(read.text) == read


def test_asks_by_device_and_by_the_clusters_own_matchers():
    assert values("X", EU) == f'max by ({", ".join(KEYS)}) (X{{cluster="eu-1"}})'
    assert 'timestamp(X{cluster="eu-1"})' in times("X", EU)
    assert doubled(["X", "Y"], EU) == (
        f'count(count by (__name__, {", ".join(KEYS)}) ({{__name__=~"X|Y",cluster="eu-1"}}) > 1)'
    )
    assert newest_values("X", EU).count('cluster="eu-1"') == 3
    assert exploding("X|Y", EU, most=9) == (
        'count by (__name__, instance) ({__name__=~"X|Y",instance!="",cluster="eu-1"}) > 9'
    )
    assert exploding("X|Y", EU, most=9, instances=["10.0.0.7:9400", "b"]) == (
        "count by (__name__, instance) "
        '({__name__=~"X|Y",instance!="",instance=~"10[.]0[.]0[.]7:9400|b",cluster="eu-1"}) > 9'
    )
    assert samples(["X", "Y"], EU) == (
        'max by (instance) (scrape_samples_post_metric_relabeling{cluster="eu-1"} '
        'and on (instance) {__name__=~"X|Y",cluster="eu-1"})'
    )
    assert devices(["X", "Y"], EU).endswith('({__name__=~"X|Y",cluster="eu-1"})')
