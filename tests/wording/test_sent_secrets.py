"""What was sent is found in whatever way a server may write it: Z39."""

import base64
import html
import json
import re
import string
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wording.sent_secrets import CUT, SHORTEST, SentSecrets

SECRETS = st.text(string.printable[:95], min_size=SHORTEST, max_size=60)
AROUND = st.text(string.ascii_letters + ": ", max_size=9)


def in_base64(text: str) -> list[str]:
    coded = [base64.b64encode(text.encode()).decode(), base64.urlsafe_b64encode(text.encode()).decode()]
    return [*coded, *map(quote_plus, coded)]


@given(SECRETS)
def test_nothing_is_left_of_one_that_is_escaped(secret):
    once = json.dumps(secret)[1:-1]
    spelt = [
        secret, once, json.dumps(once)[1:-1], once.replace("/", "\\/"), repr(secret)[1:-1], html.escape(secret),
        quote(secret), quote(secret, safe=""), quote_plus(secret), quote(quote(secret, safe="")),
        re.sub("%..", lambda found: found[0].lower(), quote(secret)),
        "".join(each if each.isalnum() else f"\\u{ord(each):04X}" for each in secret),
        "".join(each if each.isalnum() else f"&#{ord(each)};" for each in secret),
    ]  # fmt: skip
    assert [each for each in spelt if SentSecrets(secret).cut_text(f"<{each}>") != f"<{CUT.decode()}>"] == []


@given(SECRETS, AROUND, AROUND)
def test_nothing_is_left_of_one_that_is_within_base64(secret, before, after):
    """Neither can what is left be decoded to a part of it that is longer than a character."""
    for coded in in_base64(before + secret + after):
        left = SentSecrets(secret).cut_text(coded)

        kept_before, _, kept_after = left.partition(CUT.decode())
        assert CUT.decode() in left
        assert len(kept_before) <= len(before) * 8 / 6 + 1
        assert len(kept_after) <= 3 * (len(after) * 8 / 6 + 5)  # where its padding is written as %3D


def test_user_and_password_are_cut_as_one():
    header = base64.b64encode(b"ada:sesame-open").decode()

    assert SentSecrets("sesame-open", "ada:sesame-open").cut_text(f"Basic {header}.") == "Basic [redacted]."


@given(st.binary(max_size=300), SECRETS)
def test_what_has_none_of_it_stays_as_it_is(answer, secret):
    """But for a text that has it by chance, which eight characters are too many for."""
    assert SentSecrets(secret).cut(answer) == answer


@pytest.mark.parametrize("secret", ["", "a", "sesame!"])
def test_one_that_is_too_short_cuts_no_word_to_pieces(secret):
    assert SentSecrets(secret).cut_text("a sesame! is a sesame!") == "a sesame! is a sesame!"


@pytest.mark.parametrize("secret", ["\\" * 12, "!" * 8, "a\\\\\\\\\\\\\\b", "A" * 40, "%25%25%25%25", "&amp;&amp;"])
@pytest.mark.parametrize("filler", ["\\", "!", "A", "%25", "&amp;", "a\\", "25"])
def test_no_answer_makes_it_slow(secret, filler):
    began = time.monotonic()

    SentSecrets(secret).cut((secret + "x" + filler * 400_000).encode())

    assert time.monotonic() - began < 5
