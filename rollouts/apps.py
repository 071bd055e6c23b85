from django.apps import AppConfig


class RolloutsConfig(AppConfig):
    name = "rollouts"

    def ready(self) -> None:
        from fleet import retention
        from fleet.clusters.acceptance import OBJECTIONS
        from fleet.history import lines, moment
        from fleet.messages import listeners
        from fleet.pools.approval_rules import LISTENERS, LOCKS
        from fleet.pools.changes import GOES_WITH
        from health.evaluation.finding_sources import register
        from health.evaluation.node_properties import FROM_ABOVE
        from operations.restraints import DRIVER_VETOES
        from operations.test_thresholds import RESULT_TABLES
        from rollouts.approvals.automatic_approvals import ask_from_now_on, lock_plans
        from rollouts.approvals.shown_bundles import tidy
        from rollouts.commands.pool_gates import GATES_OF_A_POOL
        from rollouts.engine import looks
        from rollouts.findings.external_rollouts import FAILING
        from rollouts.findings.plan_findings import (
            CORDON_LEFT,
            CORDON_TAKEN,
            EXCLUSION_LEFT,
            HALTED,
            LEFT_BEHIND,
            UNACKNOWLEDGED_OVERRIDES,
        )
        from rollouts.findings.pool_objections import plans_that_rest_on
        from rollouts.findings.stalled_plans import STILL, UNLOOKED
        from rollouts.messages.wake import plans_of
        from rollouts.models import TestJob
        from rollouts.models.hold import plans_that_hold
        from rollouts.queries.suspects import plans_of_nodes
        from rollouts.rehearsal import retention as rehearsals
        from rollouts.web.timeline import lines_of_plans, plans_then

        FROM_ABOVE["plan"] = plans_of_nodes
        GOES_WITH.append(GATES_OF_A_POOL)
        RESULT_TABLES.append(TestJob)
        DRIVER_VETOES.append(plans_that_hold)
        register(CORDON_LEFT)
        register(CORDON_TAKEN)
        register(FAILING)
        register(UNACKNOWLEDGED_OVERRIDES)
        register(HALTED)
        register(LEFT_BEHIND)
        register(EXCLUSION_LEFT)
        register(STILL)
        register(UNLOOKED)
        OBJECTIONS.append(plans_that_rest_on)
        LOCKS.append(lock_plans)
        LISTENERS.append(ask_from_now_on)
        retention.ALSO.extend((tidy, looks.tidy, rehearsals.tidy))
        listeners.CHANGED.append(plans_of.ask)
        lines.MORE.append(lines_of_plans)
        moment.TRUE_THEN.append(plans_then)
