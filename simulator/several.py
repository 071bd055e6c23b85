"""Several clusters in one process: each has its port, its kube-system and its files, which a number tells apart."""

import argparse
from pathlib import Path

FILES = ("kubeconfig_out", "request_log", "state")


def one_of(options: argparse.Namespace, number: int) -> argparse.Namespace:
    """What was asked for, for the cluster of this number; the first has it as it was asked."""
    asked = dict(vars(options))
    if number > 1:
        asked |= {name: _numbered(asked[name], number) for name in FILES}
        asked |= {"port": asked["port"] and asked["port"] + number - 1, "seed": asked["seed"] + number - 1}
    return argparse.Namespace(**asked)


def _numbered(file: Path | None, number: int) -> Path | None:
    return None if file is None else file.with_name(f"{file.stem}-{number}{file.suffix}")
