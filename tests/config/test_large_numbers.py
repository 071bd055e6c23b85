"""Every address with a number in it, asked with one that fits no column: nothing is there, and nothing breaks."""

import re
from collections.abc import Iterator

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tests.pages import visiting

pytestmark = pytest.mark.sqlite

PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")


def addresses(patterns: list[URLPattern | URLResolver], before: str = "/") -> Iterator[str]:
    for pattern in patterns:
        there = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, there)
        elif "<int:" in there:
            yield there


ADDRESSES = sorted(set(addresses(get_resolver().url_patterns)))
OF_ANY_PLACE = "/parts/restraints/"  # what binds the whole fleet binds what is not there, too
NUMBER = 2**63


def spelled(address: str, there: dict[str, int], large: str) -> str:
    """With the large number for the parameter called `large`, and for the others what there is."""
    return PARAMETER.sub(lambda of: str(NUMBER if of[2] == large else there.get(of[2], 1)), address)


def test_nothing_is_there(there, root):
    page, answers = visiting(root.user), {}
    for client in (root, page):
        client.raise_request_exception = False
    for address in ADDRESSES:
        client, *methods = (root, "get", "post", "delete") if address.startswith("/api/") else (page, "get", "post")
        for large in [of[2] for of in PARAMETER.finditer(address) if of[1] == "int"]:
            place = spelled(address, there, large)
            answers[place] = {getattr(client, method)(place).status_code for method in methods}

    assert len(answers) > 100
    wrong = {place: said for place, said in answers.items() if not said <= {404, 405}}
    assert {place: said for place, said in wrong.items() if not place.startswith(OF_ANY_PLACE) or 500 in said} == {}
