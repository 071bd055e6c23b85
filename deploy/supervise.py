"""Starts one process of Quarterdeck and reports why it ended: `python supervise.py NAME COMMAND…`

A container's restart policy, systemd or a Deployment starts it again; this program exits like its process. It reports
the end on stderr, after the stack traces of faulthandler, and counts it for /metrics. It imports only the standard
library, since it runs all the time: 10 MiB.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ASKED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
NOTE_S = 15.0  # a database that is away must not keep the process from being started again


def main() -> int:
    name, *command = sys.argv[1:]
    asked: list[int] = []
    child = subprocess.Popen(command)

    def pass_on(number: int, _: object) -> None:
        asked.append(number)
        child.send_signal(number)

    for number in ASKED:
        signal.signal(number, pass_on)
    code = child.wait()
    if not asked:
        say(name, child.pid, cause_of(code))
        note(name, cause_of(code))
    return 128 - code if code < 0 else code


def cause_of(code: int) -> str:
    """Returns the signal or the exit code. Behind a shell, SIGKILL is 137, also after running out of memory."""
    number = -code if code < 0 else code - 128
    try:
        return signal.Signals(number).name if number > 0 else f"exit {code}"
    except ValueError:
        return f"exit {code}"


def say(name: str, pid: int, cause: str) -> None:
    """Write one JSON line, like those of the process."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    where = " Where its threads were is above, under “Fatal Python error”." if leaves_a_trace(cause) else ""
    event = f"{name} ended unexpectedly: {cause}.{where}"
    line = {"at": at, "level": "critical", "event": event, "process": name, "pid": pid, "cause": cause}
    print(json.dumps(line, ensure_ascii=False), file=sys.stderr, flush=True)


def leaves_a_trace(cause: str) -> bool:
    """Tells whether faulthandler writes a trace for it; not after SIGKILL."""
    return cause in {"SIGSEGV", "SIGFPE", "SIGABRT", "SIGBUS", "SIGILL"}


def note(name: str, cause: str) -> None:
    """Count it; where that fails, the line above is all there is of it."""
    command = [sys.executable, str(Path(os.curdir, "manage.py")), "note_process_end", name, cause]
    try:
        subprocess.run(command, timeout=NOTE_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        print(json.dumps({"level": "error", "event": f"It could not be counted: {error}"}), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
