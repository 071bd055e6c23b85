"""`bin/test hunt [--minutes N] [--rounds N] [PATH…]`: the property tests with other seeds, round after round.

A round is longer than an hour on a slow machine. So it takes the files in another order each time, and ends when the
time is up: what runs then is finished, what has not begun is counted as not tried.

A finding becomes an `@example` of its test: once a test has changed, the seed that found it may find nothing.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from tests.profiles import TIME_IS_UP, UNTIL

SEEDS = 2**32
PLUGINS = ("-p", "tests.profiles", "-p", "no:schemathesis")
FINE, FOUND = 0, 1  # pytest's exit codes
FAILING = re.compile("Failing (test case|explicit example)")
LINES_OF_AN_EXAMPLE = 30
FAILED = " FAILED tests/"  # as pytest-xdist tells of one test: [gw0] [ 12%] FAILED tests/…
PIPED: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "bufsize": 1}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bin/test hunt", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="after which no test begins any more")
    parser.add_argument("--rounds", type=int, help="after which it ends, also where time is left")
    parser.add_argument("--keep", type=Path, default=Path(".data/hunt"), help="where the logs of findings are kept")
    parser.add_argument("paths", nargs="*", default=["tests"])
    asked = parser.parse_args()
    asked.keep.mkdir(parents=True, exist_ok=True)
    until, rounds, tried, left, found = time.time() + asked.minutes * 60, 0, 0, 0, Counter[str]()
    while rounds != asked.rounds and time.time() < until:
        rounds += 1
        seed = random.SystemRandom().randrange(SEEDS)
        log = asked.keep / f"{seed}.log"
        code = go_through(asked.paths, seed, until, log)
        if code not in (FINE, FOUND):
            print(f"pytest ended with {code}: {log}", flush=True)
            return code
        report = ET.parse(log.with_suffix(".xml")).getroot()  # noqa: S314 - pytest has just written it
        untried = sum(TIME_IS_UP in skipped.get("message", "") for skipped in report.iter("skipped"))
        tried, left = tried + len(list(report.iter("testcase"))) - untried, left + untried
        for name, words in failures_in(report):
            if not found[name]:
                print(f"{name}\nseed {seed}; all of it is in {log}\n{words}\n", flush=True)
            found[name] += 1
        if code == FINE:
            log.unlink()
        log.with_suffix(".xml").unlink()
    and_left = f", {left} of the last round not, for the time was up" if left else ""
    print(f"{counted(rounds, 'round')}: {counted(tried, 'test')} tried{and_left}; {len(found)} failed.")
    for name, times in found.most_common():
        print(f"  {name}, in {counted(times, 'round')}")
    return FOUND if found else FINE


def go_through(paths: list[str], seed: int, until: float, log: Path) -> int:
    report = log.with_suffix(".xml")
    words = ["-m", "hypothesis", "--hypothesis-profile=hunt", f"--hypothesis-seed={seed}", f"--junitxml={report}"]
    pytest = [sys.executable, "-m", "pytest", *PLUGINS, "-v", "-n", "2", "--tb=short"]
    named = {**os.environ, UNTIL: str(until)}
    with log.open("w", buffering=1) as out, subprocess.Popen([*pytest, *words, *paths], env=named, **PIPED) as running:
        for line in running.stdout or ():
            out.write(line)
            if FAILED in line:  # also of a round that somebody ends before it is over
                print(f"seed {seed}: {line.strip()}", flush=True)
    return running.returncode


def failures_in(report: "ET.Element") -> Iterator[tuple[str, str]]:
    """Each test that failed, with what was raised and its example."""
    for case in report.iter("testcase"):
        for trouble in case:
            if trouble.tag in {"failure", "error"}:
                yield f"{case.get('classname')}.{case.get('name')}", example_in((trouble.text or "").splitlines())


def example_in(lines: list[str]) -> str:
    at = next((number for number, line in enumerate(lines) if FAILING.search(line)), len(lines))
    raised = [line for line in lines[:at] if line.startswith("E ")][-4:]
    return "\n".join([*raised, *lines[at : at + LINES_OF_AN_EXAMPLE]])


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


if __name__ == "__main__":
    sys.exit(main())
