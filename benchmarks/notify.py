"""Whether each event reaches its receivers once, and how soon, while receivers fail and workers are killed.

bin/bench notify [--seed N] [--short]
"""

import argparse
import os
import secrets
import sys
import tempfile
from pathlib import Path

from benchmarks.figures import Figures
from demo import valkey

P99_S = 5.0


def main() -> None:
    asked = arguments()
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    figures = Figures("notify", {"seed": seed})
    figures.measure_reference()
    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as name:
        folder = Path(name)
        child, redis_url = valkey.start(folder / "valkey", log=folder / "log", env=dict(os.environ))
        try:
            os.environ |= {
                "DJANGO_SETTINGS_MODULE": "config.settings.dev",
                "DATABASE_URL": os.environ.get("DATABASE_URL") or f"sqlite:///{folder / 'notify.sqlite3'}",
                "REDIS_URL": redis_url,
                "QUARTERDECK_SECRET_KEY": secrets.token_urlsafe(48),
                "QUARTERDECK_NOTIFICATION_NETWORKS": "127.0.0.0/8",
                "QUARTERDECK_CHANNEL_BENCH": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                "QUARTERDECK_CHANNEL_BENCH_CHANNELS": "*",
            }
            from benchmarks.notifying.run import FULL, SHORT, run

            found = run(folder, SHORT if asked.short else FULL, seed=seed)
        finally:
            child.stop()
    figures = figures.under("", events=found.events, kills=found.kills, refused=found.refused)
    figures.at_most("lost", found.lost, 0, "events")
    figures.at_most("doubled_pages", found.doubled_pages, 0, "pages")
    figures.at_most("phantoms", found.phantoms, 0, "events")  # of transactions that were rolled back
    figures.at_most("out_of_order", found.out_of_order, 0, "events")
    figures.at_most("p99_s", round(found.p99_s, 2), P99_S, "s")
    figures.beside("brief", found.brief, "findings")
    figures.beside("median_s", round(found.median_s, 2), "s")
    figures.beside("drained_s", round(found.drained_s, 1), "s")  # until the failing receiver had everything
    figures.end()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench notify")
    parser.add_argument("--seed", type=int, metavar="N", help="random, and said")
    parser.add_argument("--short", action="store_true", help="fewer events, one kill")
    return parser.parse_args()


if __name__ == "__main__":
    main()
