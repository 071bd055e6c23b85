"""Opens the demo in the browser of whoever started it, where there is one to see."""

import os
import sys
import webbrowser
from collections.abc import Mapping

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
ELSEWHERE = ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "CI")  # nobody sits there
# They would take over the terminal (webbrowser registers lynx, w3m and links as these).
OF_A_TERMINAL = ("GenericBrowser", "Elinks")


def has_somebody(named: Mapping[str, str], *, platform: str, is_root: bool) -> bool:
    """Say whether a person sits at this machine: a display, or a Mac, and neither root, nor ssh, nor CI."""
    if is_root or any(named.get(name) for name in ELSEWHERE):
        return False
    return platform == "darwin" or any(named.get(name) for name in DISPLAYS)


def show(url: str) -> bool:
    """Open the address, and say whether a browser took it."""
    if not has_somebody(os.environ, platform=sys.platform, is_root=os.geteuid() == 0):
        return False
    try:
        found = webbrowser.get()
    except webbrowser.Error:  # there is none: the address is printed
        return False
    return type(found).__name__ not in OF_A_TERMINAL and found.open(url)
