"""What every page draws alike."""

from django.utils.safestring import mark_safe

from edges.templatetags.page import glyph

MARKUP = "<b>"


def test_what_is_drawn_once_is_escaped_for_who_gives_the_same_text_unescaped():
    assert MARKUP in glyph("ok", mark_safe(MARKUP))  # noqa: S308

    assert MARKUP not in glyph("ok", MARKUP)
