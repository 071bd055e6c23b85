"""What every page draws alike."""

from datetime import timedelta
from decimal import Decimal

from django.utils import timezone
from django.utils.safestring import mark_safe

from edges.templatetags.page import clock, evidence_value, glyph, price, time_of_day
from tests.make import NOON

MARKUP = "<b>"


def test_what_is_drawn_once_is_escaped_for_who_gives_the_same_text_unescaped():
    assert MARKUP in glyph("ok", mark_safe(MARKUP))  # noqa: S308

    assert MARKUP not in glyph("ok", MARKUP)


def test_an_instant_of_another_day_names_it_but_for_where_a_heading_does(monkeypatch):
    monkeypatch.setattr(timezone, "now", lambda: NOON)
    today, before = NOON - timedelta(hours=2), NOON - timedelta(days=3)

    assert ">10:00:00<" in clock(today)
    assert ">2026-11-18 12:00:00<" in clock(before)
    assert ">12:00:00<" in time_of_day(before)


def test_a_price_has_no_zeros_that_say_nothing():
    written = {"2.5000": "2.5", "30.0000": "30", "0.0000": "0", "0.0125": "0.0125"}

    assert [price(Decimal(amount)) for amount in written] == list(written.values())
    assert price(None) == ""


def test_evidence_shows_seconds_as_a_duration_and_an_instant_as_a_time(monkeypatch):
    monkeypatch.setattr(timezone, "now", lambda: NOON)

    assert evidence_value(600.0, "s") == "10 min"
    assert evidence_value(NOON.isoformat(), "UTC") == "12:00 UTC"
    assert evidence_value(12.5, "GPU-h") == "12.5 GPU-h"
    assert evidence_value("570.86", "") == "570.86"
