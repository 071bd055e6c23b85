"""Maintenance windows by recurrence rule in a time zone. Pure."""

from rollouts.windows.rules import BadWindow
from rollouts.windows.schedule import HORIZON, Interval, Schedule, common, first_day, union, zone_named, zones

__all__ = ["HORIZON", "BadWindow", "Interval", "Schedule", "common", "first_day", "union", "zone_named", "zones"]
