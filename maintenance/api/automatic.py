"""Automatic quarantine of pools: its mode, its breaker, its decisions, and what it would have done."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge, Flat, Listing, RowSerializer
from fleet.api.serializers import RefSerializer
from fleet.models import Pool
from maintenance import automatic
from maintenance.automatic_cases import MACHINES, machines_of, set_switches, would_do
from maintenance.models import AutomaticDecision, AutomaticQuarantine
from maintenance.trials import DecisionAcceptance, ShadowTrial, acceptance_of, trial_of
from maintenance.triggers import TRIGGERS, AutomaticVerdict, BreakerState, Mode
from people.rights import Permission, require

MODES = [(mode.value, mode.value) for mode in Mode]
BREAKERS = [(state.value, state.value) for state in BreakerState]
REASON = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")

SKIP = serializers.BooleanField(
    required=False, default=False, help_text="Skip the rest of the 14 days in shadow mode, for the reason given."
)


class AutomaticSerializer(RowSerializer):
    """The automatic quarantine of a pool. The id is the id of the pool."""

    cluster = RefSerializer()
    mode = serializers.ChoiceField(choices=MODES)
    mode_since = serializers.DateTimeField(allow_null=True, help_text="Null: it was never on.")
    changed_by = serializers.CharField()
    breaker = serializers.ChoiceField(choices=BREAKERS)
    breaker_since = serializers.DateTimeField(allow_null=True)
    breaker_reason = serializers.CharField()

    class Meta:
        model = Pool
        fields: ClassVar[tuple[str, ...]] = (
            "id", "name", "cluster", "mode", "mode_since", "changed_by", "breaker", "breaker_since", "breaker_reason",
        )  # fmt: skip


class MachineSerializer(serializers.Serializer):
    key = serializers.CharField(help_text="`repair` of the switches.")
    title = serializers.CharField()
    why_not = serializers.CharField(help_text="Why it cannot be asked now. Blank: it can.")


class AutomaticDetailSerializer(AutomaticSerializer):
    status = serializers.CharField(help_text="The state now, in a sentence.")
    numbers = serializers.CharField(help_text="The numbers that the breaker compares. Blank: it was never on.")
    trial_since = serializers.DateTimeField(allow_null=True, help_text="Its decisions are recorded since. Null: off.")
    trial_ends_at = serializers.DateTimeField(allow_null=True, help_text="End of the 14 days before mode suggest.")
    trial_skipped_by = serializers.CharField(help_text="Who skipped the rest of them. Blank: nobody.")
    trial_skip_reason = serializers.CharField()
    accepted = serializers.IntegerField(help_text="Of the last judged decisions: those that people accepted.")
    judged = serializers.IntegerField(help_text="The last decisions that people judged, at most 20.")
    not_judged = serializers.IntegerField(help_text="Decisions that people can still judge. Blocked ones do not count.")
    drain_since = serializers.DateTimeField(allow_null=True, help_text="Null: no node is drained automatically.")
    drain_by = serializers.CharField(help_text="Who switched it on.")
    repair_since = serializers.DateTimeField(allow_null=True, help_text="Null: no node is repaired automatically.")
    repair_by = serializers.CharField(help_text="Who switched it on.")
    repair_through = serializers.CharField(help_text="The actor. Blank: none.")
    machines = MachineSerializer(many=True, help_text="The actors of automatic repairs.")
    other = serializers.CharField(help_text="Who else quarantines nodes of the cluster. Blank: no known controller.")
    rule_modes = serializers.DictField(help_text="Limits of rules below the mode, by rule.")

    class Meta(AutomaticSerializer.Meta):
        fields: ClassVar[tuple[str, ...]] = (
            *AutomaticSerializer.Meta.fields,
            "status",
            "numbers",
            "trial_since",
            "trial_ends_at",
            "trial_skipped_by",
            "trial_skip_reason",
            "accepted",
            "judged",
            "not_judged",
            "drain_since",
            "drain_by",
            "repair_since",
            "repair_by",
            "repair_through",
            "machines",
            "other",
            "rule_modes",
        )


class DecisionSerializer(RowSerializer):
    verdict = serializers.ChoiceField(choices=[(each.value, each.value) for each in AutomaticVerdict])
    finding = serializers.IntegerField(source="finding_id", allow_null=True)
    case = serializers.IntegerField(source="case_id", allow_null=True)
    evidence = serializers.DictField(help_text="Version of the table, the finding, and the numbers of the breaker.")

    class Meta:
        model = AutomaticDecision
        fields = ("id", "at", "node_name", "node_uid", "trigger", "verdict", "reason", "finding", "case", "evidence")


class WouldActSerializer(serializers.Serializer):
    at = serializers.DateTimeField(source="act.at")
    node_name = serializers.CharField(source="act.match.sign.node_name")
    node_uid = serializers.CharField(source="act.match.sign.node_uid")
    trigger = serializers.CharField(source="act.match.trigger.key")
    finding = serializers.IntegerField(source="act.match.sign.finding")
    blocked = serializers.CharField(
        source="act.reason", help_text="Why the breaker blocks it. Blank: the node is cordoned."
    )
    drained = serializers.BooleanField(source="is_drained", help_text="With the drain switch on.")
    repair = serializers.CharField(help_text="The first repair with the repair switch on. Blank: none.")


class ModeRequest(Asked):
    mode = serializers.ChoiceField(choices=MODES, help_text="One step up at most: off, shadow, suggest, act.")
    skip_trial = SKIP
    reason = REASON


class SwitchesRequest(Asked):
    drain = serializers.BooleanField(help_text="Drain nodes 10 min after their automatic cordon. Needs mode act.")
    repair = serializers.ChoiceField(
        choices=[("", "off"), *((key, actor.title) for key, actor in MACHINES.items())], required=False, default="",
        allow_blank=True, help_text="The actor that repairs drained nodes. Blank: off. Needs `drain`.",
    )  # fmt: skip
    reason = REASON


class RuleModeRequest(Asked):
    rule = serializers.ChoiceField(choices=[(trigger.key, trigger.title) for trigger in TRIGGERS])
    mode = serializers.ChoiceField(choices=MODES, help_text="The highest mode of this rule. `act`: no limit.")
    skip_trial = SKIP
    reason = REASON


class BreakerResetRequest(Asked):
    reason = REASON


class ShownAutomatic:
    def __init__(self, pool: Pool) -> None:
        row = getattr(pool, "automatic_quarantine", None)
        self.mode = row.mode if row else Mode.OFF.value
        self.mode_since = row.mode_since if row else None
        self.changed_by = row.changed_by if row else ""
        self.breaker = row.breaker if row else BreakerState.CLOSED.value
        self.breaker_since = row.breaker_since if row else None
        self.breaker_reason = row.breaker_reason if row else ""


class ShownDetail(ShownAutomatic):
    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        row = getattr(pool, "automatic_quarantine", None)
        self.status = automatic.status_of(row, pool, now=timezone.now())
        self.numbers = automatic.numbers_of(row, now=timezone.now()).sentence if row else ""
        trial = trial_of(row) if row else ShadowTrial(None)
        self.trial_since, self.trial_ends_at = trial.since, trial.ends_at
        self.trial_skipped_by, self.trial_skip_reason = trial.skipped_by, trial.skip_reason
        accepted = acceptance_of(row) if row else DecisionAcceptance(0, 0, 0)
        self.accepted, self.judged, self.not_judged = accepted.accepted, accepted.judged, accepted.waiting
        self.drain_since = row.drain_since if row else None
        self.drain_by = row.drain_by if row else ""
        self.repair_since = row.repair_since if row else None
        self.repair_by = row.repair_by if row else ""
        self.repair_through = row.repair_through if row else ""
        self.other = automatic.other_quarantine(pool.cluster)
        self.rule_modes = row.rule_modes if row else {}
        self.machines = [
            {"key": actor.key, "title": actor.title, "why_not": why_not} for actor, why_not in machines_of(pool)
        ]


class AutomaticEdge(Edge):
    def pools(self) -> QuerySet[Pool]:
        visible = Pool.objects.visible_to(self.user).select_related("cluster", "automatic_quarantine")
        return visible.order_by("cluster__name", "name")

    def pool(self, pool_id: int) -> Pool:
        return self.load(self.pools(), pool_id)

    def answer(self, pool_id: int) -> Response:
        pool = self.pool(pool_id)
        return Response(AutomaticDetailSerializer(Flat(ShownDetail(pool), pool)).data)


class AutomaticList(AutomaticEdge, Listing):
    """Lists the pools with the mode and the breaker of their automatic quarantine."""

    serializer_class = AutomaticSerializer
    queryset = Pool.objects.none()

    def get_queryset(self) -> QuerySet[Pool]:
        return self.pools()

    def see(self, rows: Sequence[Pool]) -> Iterable[Flat]:
        return [Flat(ShownAutomatic(pool), pool) for pool in rows]


class AutomaticDetail(AutomaticEdge):
    @extend_schema(responses=AutomaticDetailSerializer)
    def get(self, request, pool_id: int) -> Response:
        return self.answer(pool_id)


class AutomaticModes(AutomaticEdge):
    http_method_names = ["post", "options"]

    @extend_schema(request=ModeRequest, responses=AutomaticDetailSerializer)
    def post(self, request, pool_id: int) -> Response:
        """Changes the mode. Findings so far start nothing. 409 before 14 days of shadow mode, unless the rest is
        skipped, and for mode act if people accepted fewer than 90 % of the last 20 judged decisions."""
        pool = self.pool(pool_id)
        where = f"cluster {pool.cluster.name}"
        require(self.user, Permission.ADMINISTER, cluster_id=pool.cluster_id, where=where)
        automatic.change_mode(pool, actor=self.user.get_username(), now=timezone.now(), **self.read(ModeRequest))
        return self.answer(pool_id)


class AutomaticSwitches(AutomaticEdge):
    http_method_names = ["post", "options"]

    @extend_schema(request=SwitchesRequest, responses=AutomaticDetailSerializer)
    def post(self, request, pool_id: int) -> Response:
        """Switches automatic drains and repairs. Open cases start nothing. 409 without mode act."""
        pool = self.pool(pool_id)
        where = f"cluster {pool.cluster.name}"
        require(self.user, Permission.ADMINISTER, cluster_id=pool.cluster_id, where=where)
        set_switches(pool, actor=self.user.get_username(), now=timezone.now(), **self.read(SwitchesRequest))
        return self.answer(pool_id)


class AutomaticRules(AutomaticEdge):
    http_method_names = ["post", "options"]

    @extend_schema(request=RuleModeRequest, responses=AutomaticDetailSerializer)
    def post(self, request, pool_id: int) -> Response:
        """Limits one rule to a mode, up one step at a time. Earlier findings of a raised rule start nothing. 409 before
        the first mode of the pool, for more than one step up, and before 14 days of shadow mode of a rule that was off,
        unless the rest is skipped."""
        pool = self.pool(pool_id)
        where = f"cluster {pool.cluster.name}"
        require(self.user, Permission.ADMINISTER, cluster_id=pool.cluster_id, where=where)
        automatic.change_rule(pool, actor=self.user.get_username(), now=timezone.now(), **self.read(RuleModeRequest))
        return self.answer(pool_id)


class AutomaticBreakerResets(AutomaticEdge):
    http_method_names = ["post", "options"]

    @extend_schema(request=BreakerResetRequest, responses=AutomaticDetailSerializer)
    def post(self, request, pool_id: int) -> Response:
        """Makes an open breaker half-open: one act, which is watched for 30 min. Findings so far start nothing."""
        pool = self.pool(pool_id)
        require(self.user, Permission.RUN, cluster_id=pool.cluster_id, where=f"cluster {pool.cluster.name}")
        row = self.load(AutomaticQuarantine.objects.filter(pool=pool).select_related("pool"), _key_of(pool))
        automatic.reset_breaker(
            row, actor=self.user.get_username(), now=timezone.now(), **self.read(BreakerResetRequest)
        )
        return self.answer(pool_id)


class AutomaticDecisions(AutomaticEdge, Listing):
    """Lists what the automatic quarantine of a pool did or would have done, the newest first."""

    serializer_class = DecisionSerializer
    queryset = AutomaticDecision.objects.none()

    def get_queryset(self) -> QuerySet[AutomaticDecision]:
        pool = self.pool(self.kwargs["pool_id"])
        return AutomaticDecision.objects.filter(automatic__pool=pool).order_by("-at", "-pk")


class AutomaticBacktests(AutomaticEdge):
    @extend_schema(responses=WouldActSerializer(many=True))
    def get(self, request, pool_id: int) -> Response:
        """Returns what mode act would have done in the last 30 days, from stored findings. The newest 500."""
        found = would_do(self.pool(pool_id), now=timezone.now())
        return Response(WouldActSerializer(found[:500], many=True).data)


def _key_of(pool: Pool) -> int:
    row = getattr(pool, "automatic_quarantine", None)
    return row.pk if row else 0
