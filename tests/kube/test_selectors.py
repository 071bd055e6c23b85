"""Label selectors: what they mean, and that reading one is linear and bounded."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import selectors
from kube.selectors import LONGEST, MOST, BadSelector, of_object, parse

LABELS = st.dictionaries(st.sampled_from(["a", "b", "x/y"]), st.sampled_from(["", "1", "2"]))


def test_commas_in_brackets_part_nothing():
    found = parse("a=b, c!=d,e in (f,g),h notin (i),j,!k")

    assert [requirement.key for requirement in found.requirements] == ["a", "c", "e", "h", "j", "k"]
    assert found.requirements[2].wanted == {"f", "g"}


@pytest.mark.parametrize(
    "text", ["a in (b,c", "a)", "a in b)", "a in ((b))", "a=b,,c", ",", "a=b,", "a=é", "a b", "=a"]
)
def test_what_is_no_selector_is_refused(text):
    with pytest.raises(BadSelector):
        parse(text)


@given(st.text(alphabet="ab=!,() inot", max_size=40))
def test_it_is_cut_where_the_grammar_cuts_it(text):
    """Against the grammar as one expression, which is right and takes the square of the length."""
    cut = re.split(r",(?![^()]*\))", text)
    try:
        parse(text)
    except BadSelector:
        return

    assert list(selectors._parts(text)) == cut


@pytest.mark.parametrize("text", ["," * 40_000, "a" * (LONGEST + 1), "a in (" + "b," * 40_000])
def test_what_is_too_long_is_refused_before_it_is_read(text, monkeypatch):
    monkeypatch.setattr(selectors, "_parts", lambda _: pytest.fail("it was read"))

    with pytest.raises(BadSelector, match=f"at most {LONGEST} characters; this one has {len(text)}"):
        parse(text)


def test_there_are_only_so_many_requirements():
    assert len(parse(",".join(f"a{number}" for number in range(MOST))).requirements) == MOST

    with pytest.raises(BadSelector, match=f"at most {MOST} requirements; this one has {MOST + 1}"):
        parse(",".join(f"a{number}" for number in range(MOST + 1)))


def test_each_character_is_looked_at_once(monkeypatch):
    class Counted(str):
        looked = 0

        def __iter__(self):
            for char in super().__iter__():
                Counted.looked += 1
                yield char

    list(selectors._parts(Counted("," * 40_000)))

    assert Counted.looked == 40_000


def test_a_refusal_does_not_repeat_all_of_it():
    with pytest.raises(BadSelector) as refusal:
        parse("=" * LONGEST)

    assert len(str(refusal.value)) < 300


KEYS, VALUES = st.sampled_from(["a", "b", "x/y"]), st.sampled_from(["1", "2", "3"])
EXPRESSIONS = st.one_of(
    st.fixed_dictionaries(
        {"key": KEYS, "operator": st.sampled_from(["In", "NotIn"]), "values": st.lists(VALUES, min_size=1, max_size=2)}
    ),
    st.fixed_dictionaries({"key": KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
AS_TEXT = {"In": "{} in ({})", "NotIn": "{} notin ({})", "Exists": "{}", "DoesNotExist": "!{}"}


@given(st.dictionaries(KEYS, VALUES), st.lists(EXPRESSIONS, max_size=3), LABELS)
def test_an_objects_selector_means_what_its_text_means(wanted, expressions, labels):
    text = [f"{key}={value}" for key, value in wanted.items()]
    text += [AS_TEXT[one["operator"]].format(one["key"], ",".join(one.get("values", ()))) for one in expressions]

    found = of_object({"matchLabels": wanted, "matchExpressions": expressions})

    assert found.matches(labels) is parse(",".join(text)).matches(labels)


def test_no_selector_selects_nothing_and_an_empty_one_everything():
    assert of_object(None) is None
    assert of_object({}).matches({})


@pytest.mark.parametrize(
    "broken",
    [
        {"matchLabels": ["a"]},
        {"matchLabels": {"a": {"b": "c"}}},
        {"matchExpressions": {"key": "a"}},
        {"matchExpressions": ["a"]},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["1"]}]},
        {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
        {"matchExpressions": [{"operator": "Exists"}]},
    ],
)
def test_an_objects_selector_that_the_api_server_would_not_read_is_refused(broken):
    with pytest.raises(BadSelector):
        of_object(broken)
