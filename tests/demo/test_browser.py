"""A browser opens where a person sits, and nowhere else."""

import webbrowser

import pytest

from demo import browser

SEEN = {"DISPLAY": ":0"}


@pytest.mark.parametrize(
    ("named", "platform", "is_root", "opens"),
    [
        (SEEN, "linux", False, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", False, True),
        ({}, "darwin", False, True),
        ({}, "linux", False, False),
        ({"DISPLAY": ""}, "linux", False, False),
        (SEEN, "linux", True, False),
        ({}, "darwin", True, False),
        (SEEN | {"SSH_CONNECTION": "10.0.0.1 22"}, "linux", False, False),
        ({"SSH_TTY": "/dev/pts/0"}, "darwin", False, False),
        (SEEN | {"CI": "true"}, "linux", False, False),
    ],
)
def test_a_browser_opens_where_somebody_sees_it(named, platform, is_root, opens):
    assert browser.has_somebody(named, platform=platform, is_root=is_root) is opens


class Opened(webbrowser.BackgroundBrowser):
    """A browser with a window."""

    def __init__(self) -> None:
        super().__init__("firefox")
        self.urls: list[str] = []

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        self.urls.append(url)
        return True


def test_it_opens_the_address_of_the_demo(monkeypatch: pytest.MonkeyPatch):
    opened = Opened()
    monkeypatch.setattr(webbrowser, "get", lambda: opened)
    monkeypatch.setattr(browser, "has_somebody", lambda *_, **__: True)

    assert browser.show("http://127.0.0.1:8000")
    assert opened.urls == ["http://127.0.0.1:8000"]


def test_a_browser_of_the_terminal_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser("lynx"))
    monkeypatch.setattr(browser, "has_somebody", lambda *_, **__: True)

    assert not browser.show("http://127.0.0.1:8000")
