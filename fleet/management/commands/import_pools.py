import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from fleet.models import Cluster
from fleet.pools.approval_rules import ProductionAsks
from fleet.pools.changes import PoolGone, PoolInUse, PoolTaken
from fleet.pools.files import BadPoolFile, FileChange, compare, parse_pool_file, take_over
from people.roster.accounts import CONSOLE
from wording.numbers import count, either


class Command(BaseCommand):
    help = "Import the pools of a cluster from a YAML file. If one entry is bad, nothing is imported."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster")
        parser.add_argument("file", help="as GET /api/v1/clusters/ID/pool-file returns it; - reads from standard input")
        parser.add_argument("--dry-run", action="store_true", help="print the changes without making them")
        parser.add_argument("--prune", action="store_true", help="also delete the pools that the file does not name")

    def handle(self, *args: Any, **given: Any) -> None:
        cluster = cluster_of(given["cluster"])
        try:
            file = parse_pool_file(self._text(given["file"]))
        except BadPoolFile as refusal:
            lines = "\n".join(f"line {each.line}: {each.sentence}" for each in refusal.lines)
            raise CommandError(f"Nothing was changed.\n{lines}") from refusal
        if file.cluster not in {"", cluster.name}:
            raise CommandError(f"The file is for cluster {file.cluster}, not {cluster.name}. Nothing was changed.")
        comparison = compare(cluster, file.entries, prune=given["prune"])
        for change in comparison.changes:
            self.stdout.write(_change_line(change))
        if comparison.obstacles:
            raise CommandError(f"Nothing was changed. {' '.join(comparison.obstacles)}")
        if given["dry_run"]:
            self.stdout.write("Nothing was changed: this was a dry run.")
            return
        try:
            take_over(comparison, actor=CONSOLE, now=timezone.now())
        except (PoolGone, PoolInUse, PoolTaken, ProductionAsks) as refusal:
            raise CommandError(f"Nothing was changed. {refusal}") from refusal

    def _text(self, name: str) -> str:
        try:
            return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{name} cannot be read: {error}.") from error


def cluster_of(name: str) -> Cluster:
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise CommandError(f"Cluster {name} does not exist. Add it with add_cluster.")
    return cluster


def _change_line(change: FileChange) -> str:
    words = [f"{change.what.value:<9} {change.name}"]
    if change.pool and change.fields:
        words += [f"{name}: {was} → {value}" for name, was, value in change.moves]
    if shown := change.preview:
        enter, leave = either(shown.entering, "enters", "enter"), either(shown.leaving, "leaves", "leave")
        words.append(f"{count(shown.nodes, 'node')}, {shown.entering} {enter}, {shown.leaving} {leave}")
        words += [f"shares {count(each.nodes, 'node')} with {each.pool.name}" for each in shown.overlaps]
    return "; ".join(words)
