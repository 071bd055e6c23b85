from datetime import date, time, timedelta

from django import forms

from edges.fields import ClockTime, Day, Reason, WholeNumber, refuse
from rollouts.commands.fleet_freezes import Where
from rollouts.commands.refusals import BadSchedule
from rollouts.models import MaintenanceWindow
from rollouts.web.scopes import PlacedForm
from rollouts.windows import first_day
from rollouts.windows.rules import LONGEST
from rollouts.windows.schedule import LONGEST_ZONE

PREVIEWED_FIELDS = ("on", "rule", "opens_at", "zone", "hours", "minutes")
FORM_NAMES = {"duration_s": "hours"}  # the form uses other units than windows store
NO_PLACE = "Choose a cluster or a pool."
NO_NUMBER = {
    "invalid": "Hours and minutes are whole numbers.",
    "min_value": "Hours and minutes must be whole numbers of 0 or more.",
    "max_value": "A window is open for at most 7 days: 168 hours.",
}


class WindowForm(PlacedForm):
    blank = [("", "choose one")]

    on = forms.CharField(
        label="Cluster or pool",
        error_messages={"required": NO_PLACE},
        widget=forms.Select,
        help_text="If both the cluster and the pool have windows, both windows must be open.",
    )
    opens_at = ClockTime(
        label="Opens at", initial="02:00", help_text="Local time of the zone, also when the clocks change."
    )
    zone = forms.CharField(
        label="Time zone",
        initial="UTC",
        max_length=LONGEST_ZONE,
        error_messages={"required": "Name a time zone, or UTC."},
        help_text="For example Europe/Berlin.",
        widget=forms.TextInput({"list": "zones", "autocomplete": "off", "spellcheck": "false"}),
    )
    hours = WholeNumber(
        label="Open for (hours)",
        initial=4,
        required=False,
        min_value=0,
        max_value=1000,
        error_messages=NO_NUMBER,
        help_text="In elapsed time, also when the clocks change.",
        widget=forms.TextInput({"inputmode": "numeric", "autocomplete": "off"}),
    )
    minutes = WholeNumber(
        label="and minutes",
        initial=0,
        required=False,
        min_value=0,
        max_value=100_000,
        error_messages=NO_NUMBER,
        widget=forms.TextInput({"inputmode": "numeric", "autocomplete": "off"}),
    )
    first_day = Day(
        label="From this day on",
        required=False,
        help_text="INTERVAL and COUNT count from this day. Empty: the first day with an interval that has not ended.",
    )
    rule = forms.CharField(
        label="On these days (RRULE)",
        initial="FREQ=WEEKLY;BYDAY=SA,SU",
        required=False,
        help_text=(
            "FREQ=DAILY · FREQ=WEEKLY;BYDAY=SA,SU · FREQ=MONTHLY;BYDAY=2TU (second Tuesday) · "
            "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1 (last working day) · FREQ=WEEKLY;INTERVAL=2;BYDAY=WE"
        ),
        widget=forms.TextInput({"maxlength": LONGEST, "autocomplete": "off", "spellcheck": "false"}),
    )
    reason = Reason(label="Purpose (stored permanently)", required=False)

    @property
    def previewed(self) -> str:
        return "|".join([*(str(self[name].value() or "") for name in PREVIEWED_FIELDS), str(self.begins_on)])

    @property
    def begins_on(self) -> date:
        given = self.cleaned_data
        return given["first_day"] or first_day(given["opens_at"], given["zone"], self.lasts, now=self.now)

    @property
    def lasts(self) -> timedelta:
        given = self.cleaned_data
        return timedelta(hours=given["hours"] or 0, minutes=given["minutes"] or 0)

    def clean_on(self) -> Where:
        where = super().clean_on()
        if where.cluster is None:
            raise forms.ValidationError(NO_PLACE)
        return where

    def clean_opens_at(self) -> time:
        return self.cleaned_data["opens_at"].replace(second=0, microsecond=0)

    def window(self) -> MaintenanceWindow:
        given = self.cleaned_data
        return MaintenanceWindow(
            cluster=given["on"].cluster, pool=given["on"].pool, rule=given["rule"], zone=given["zone"],
            first_day=self.begins_on, opens_at=given["opens_at"], duration_s=int(self.lasts.total_seconds()),
            reason=given["reason"], by=self.user.username, at=self.now,
        )  # fmt: skip

    def refuse(self, refusal: BadSchedule) -> None:
        for problem in refusal.problems:
            refuse(self, FORM_NAMES.get(problem["field"], problem["field"]), problem["sentence"])
