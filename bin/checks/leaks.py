#!/usr/bin/env python3
"""Fails if a tracked file names the host of a package registry or a path of one machine.

Each installation has its own package source, such as a mirror. A path of one machine is useless on another.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = re.compile(r"\b(?:pypi|pythonhosted|registry\.npmjs|npmjs|deb\.debian|proxy\.golang)\.org\b|\bcrates\.io\b")
MACHINE = re.compile(r"(?<![\w.$})/-])/(?:work|farm|home/(?!kubernetes/)\w+|Users/\w+)/[\w.]")
# Other people's text, kept as it came; a hash line cannot leak.
KEPT_AS_IS = ("static/vendor/",)


def main() -> int:
    """Prints every leak; returns the exit status."""
    found = [leak for path in tracked() for leak in leaks(path)]
    sys.stdout.writelines(f"{leak}\n" for leak in found)
    return 1 if found else 0


def tracked() -> list[str]:
    """Every file that a commit would hold."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603
    return [path for path in listed.stdout.splitlines() if not path.startswith(KEPT_AS_IS) and (ROOT / path).is_file()]


def leaks(path: str) -> list[str]:
    """Name the line and the words; a file that is no text has none."""
    try:
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    numbered = enumerate(lines, start=1)
    found = [(number, REGISTRY.search(line) or MACHINE.search(line)) for number, line in numbered]
    return [f"{path}:{number}: {match.group()}" for number, match in found if match]


if __name__ == "__main__":
    sys.exit(main())
