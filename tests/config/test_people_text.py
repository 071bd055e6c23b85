"""No text that anybody sends holds the process for long: every parser of such text, at its bound and far beyond."""

import ast
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.forms import CharField as FormText
from django_filters import CharFilter
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rest_framework.serializers import CharField

import config.api  # noqa: F401 - so that every serializer there is was made
from edges.rest import Asked
from fleet.api import filters
from people.web.account import TokenForm
from rollouts.api.plans import PlanFilters
from tests.config.people_text import PARSERS, Parser
from tests.rooms import PRODUCT

ROOT = Path(__file__).resolve().parents[2]
CARRIES = {"GET", "POST", "FILES", "COOKIES", "META", "headers", "query_params", "query_string", "data", "body"}
SECONDS = 1.0  # of this thread's CPU; what is slowest takes a fifth of it
WORST = 4
SEEDS = [
    ",", "(", ")", "a,", "a=b,", "a in (", "!", "[", "{", "{a: ", "{a,", "[{", "- ", "? ", "a: b\n", "a:\n", "\\", "'",
    '"', "&a ", "*a ", "<<: *a\n", "!!a ", "%a\n", "#\n", "---\n", " ", "\n", "\t", "0", "9", "1.", "1_", "1:", "-1",
    "e9", ".", "v1-", "a/", "é", "０", "\x00", "\ud800", "[[],", '{"a":', '"\\u0000",', "Ki", "%", "a;b,", "W/", '"a",',
    "a=", "=a;", "|\n ",
]  # fmt: skip


def cost_s(parser: Parser, text: str) -> float:
    began = time.thread_time()
    parser.read(text)
    return time.thread_time() - began


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_the_worst_that_can_be_sent_is_read_in_no_time(parser: Parser):
    """The seeds that cost most at an eighth of the bound are read at the bound: what grows faster costs more there."""
    early = {seed: cost_s(parser, (seed * parser.longest)[: parser.longest // 8]) for seed in SEEDS}
    worst = sorted(early, key=early.__getitem__)[-WORST:]
    slow = {seed: cost_s(parser, (seed * parser.longest)[: parser.longest]) for seed in worst}

    assert max(slow.values()) < SECONDS, {seed: took for seed, took in slow.items() if took >= SECONDS}


@pytest.mark.nightly
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
@settings(max_examples=15, deadline=None)
@given(
    seed=st.text(alphabet=",()[]{}=!&*?:-#'\"\\ \n\ta1.0%|<>@`é０", min_size=1, max_size=8),
    before=st.sampled_from(["", "{", "[", "pools:\n", "pools: [", '"', "a in (", '{"a":', "- name: "]),
)
@example(seed="{a: ", before="")
def test_nor_is_anything_else(parser: Parser, seed: str, before: str):
    assert cost_s(parser, (before + seed * parser.longest)[: parser.longest]) < SECONDS


def modules_that_read_requests() -> Iterator[str]:
    for path in sorted(path for room in PRODUCT for path in (ROOT / room).rglob("*.py")):
        text = path.read_text()
        if "request" not in text and "query_string" not in text:  # half of the modules need no parsing
            continue
        if any(_is_of_a_request(node) for node in ast.walk(ast.parse(text))):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts)


def _is_of_a_request(node: ast.AST) -> bool:
    """`request.GET`, `self.request.headers`, `context["request"].GET`, `self.scope["query_string"]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value == "query_string"
    if not (isinstance(node, ast.Attribute) and node.attr in CARRIES):
        return False
    return ast.unparse(node.value).removesuffix("']").endswith("request")


def test_whatever_reads_a_request_is_in_the_table():
    assert set(modules_that_read_requests()) == {module for parser in PARSERS for module in parser.read_in}


def every_asked(kind: type = Asked) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from every_asked(each)


def test_every_text_of_a_body_has_a_length():
    fields = [(each.__name__, name, field) for each in every_asked() for name, field in each().fields.items()]

    assert fields
    assert [
        (shape, name) for shape, name, field in fields if isinstance(field, CharField) and not field.max_length
    ] == []


def test_every_text_of_a_filter_or_form_has_a_length():
    shapes = [each for each in vars(filters).values() if hasattr(each, "base_filters")] + [PlanFilters]
    texts = [
        (each, name) for each in shapes for name, field in each.base_filters.items() if isinstance(field, CharFilter)
    ]
    forms = [name for name, field in TokenForm.base_fields.items() if isinstance(field, FormText)]

    assert texts
    assert forms
    assert [(each, name) for each, name in texts if not each.base_filters[name].field.max_length] == []
    assert all(TokenForm.base_fields[name].max_length for name in forms)
