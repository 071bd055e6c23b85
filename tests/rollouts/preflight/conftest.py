import pytest

from wording import reports


@pytest.fixture(autouse=True)
def _whole_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Titles and summaries of checks are short enough to be shown whole."""

    def whole(text: str, longest: int) -> str:
        assert len(text) <= longest, text
        return text

    monkeypatch.setattr(reports, "clip", whole)
