"""bin/bench NAME [--record] [options]: runs one bench; with --record its figures are kept in benchmarks/results/."""

import subprocess
import sys

from benchmarks import results

RECORD = "--record"


def main() -> int:
    """Returns the bench's own status. A bench that is interrupted leaves no record."""
    name, *words = sys.argv[1:]
    options = [word for word in words if word != RECORD]
    bench = [sys.executable, "-m", f"benchmarks.{name}", *options]
    if RECORD not in words:
        return subprocess.run(bench, check=False).returncode
    try:
        commit = results.commit()
    except results.UncommittedError as error:
        sys.exit(f"bin/bench: {error}")
    lines = []
    with subprocess.Popen(bench, stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    number = results.record(lines, options=options, made_by=commit, at=results.now())
    print(f"bin/bench: {number} figures recorded. Run bin/tables to show them in docs/figures.md.", file=sys.stderr)
    return running.returncode


if __name__ == "__main__":
    sys.exit(main())
