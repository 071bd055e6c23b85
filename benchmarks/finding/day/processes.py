"""Each day in a process of its own, with a database in memory and a Redis database: they go side by side."""

import logging
import multiprocessing
import os
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.finding.day.telling import Told, Trouble

SETTINGS = {"DJANGO_SETTINGS_MODULE": "config.settings.test", "DATABASE_URL": "sqlite://:memory:"}


def lived(asked: Sequence[Any], redis_url: str) -> list[Told]:
    """What came of each. :raises RuntimeError: one ended before its time"""
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(len(asked), os.cpu_count() or 1), maxtasksperchild=1) as pool:
        running = [
            pool.apply_async(live_in_process, (day, f"{redis_url}?db={number}")) for number, day in enumerate(asked)
        ]
        return [each.get() for each in running]


def live_in_process(asked: Any, redis_url: str) -> Told:
    make_ready(redis_url)
    from benchmarks.finding.day.run import live

    began = time.process_time()
    day = live(asked)
    return trial_summary(asked, day, time.process_time() - began)


def make_ready(redis_url: str) -> None:
    """Django, with an empty database in memory, and without a word in any log."""
    os.environ |= SETTINGS | {"REDIS_URL": redis_url}
    import django

    django.setup()
    import structlog
    from django.apps import apps
    from django.conf import settings
    from django.core.management import call_command

    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    # The tables as the models say: that migrations lead there is another test's.
    settings.MIGRATION_MODULES = dict.fromkeys(app.label for app in apps.get_app_configs())
    call_command("migrate", run_syncdb=True, verbosity=0)


def trial_summary(asked: Any, day: Any, cpu_s: float) -> Told:
    from benchmarks.finding.day.outages import OUTAGES

    verdict = day.verdict
    plants = [plant for plant in verdict.schedule.plants if plant.is_trouble]
    outages = [outage for outage in verdict.schedule.outages if OUTAGES[outage.what].rule]
    in_vain = [plant for plant in plants if not plant.is_judged and plant.ends_s <= asked.hours * 3600]
    troubles = [
        *(Trouble("missed", one.number, _said(one)) for one in plants if one.missed),
        *(
            Trouble("missed", one.number, f"{one.what.value} from {_clock(one.begins_s)}")
            for one in outages
            if one.missed
        ),
        *(Trouble("wrong cause", one.number, f"{_said(one)}; told: {one.wrong}") for one in plants if one.wrong),
        *(Trouble("duplicate", one.number, f"{_said(one)}; told: {one.doubled}") for one in plants if one.doubled),
        *(Trouble("false", one.number, one.says) for one in verdict.false.values()),
        *(Trouble("in vain", one.number, _said(one)) for one in in_vain),
    ]
    return Told(
        nodes=asked.nodes,
        hours=asked.hours,
        planted=sum(plant.is_judged for plant in plants) + len(outages),
        harmless=len(verdict.schedule.plants) - len(plants) + len(verdict.schedule.outages) - len(outages),
        in_vain=len(in_vain),
        missed=sum(one.missed for one in [*plants, *outages]),
        wrong=sum(bool(plant.wrong) for plant in plants),
        doubled=sum(bool(plant.doubled) for plant in plants),
        false=len(verdict.false),
        notes=len(verdict.notes),
        cpu_s=cpu_s,
        quiet_cpu_ratio=day.cost.quiet_cpu_ratio,
        troubles=tuple(troubles),
    )


def _said(plant: Any) -> str:
    moments = [f"{word} {_clock(at)}" for word, at in (("visible", plant.visible_s), ("found", plant.found_s)) if at]
    span = f"from {_clock(plant.begins_s)} to {_clock(plant.ends_s)}"
    faults = ", ".join(map(repr, plant.planting.faults))
    return f"{plant.kind.name}, {plant.subject}, {', '.join([span, *moments])}: {faults}"


def _clock(passed_s: float) -> str:
    from benchmarks.finding.day.verdict import clock

    return clock(passed_s)
