"""The common part of plan views: loading visible objects, and checking the permission in one place."""

from typing import Any

from edges.rest import Edge
from fleet.models import DriverObject
from people.rights import Permission, require
from rollouts.models import Plan, Stage, Target


class PlanEdge(Edge):
    def plan(self, plan_id: int) -> Plan:
        return self.load(Plan.objects.visible_to(self.user).select_related("cluster"), plan_id)

    def stage(self, stage_id: int) -> Stage:
        return self.load(Stage.objects.visible_to(self.user).select_related("plan__cluster", "pool"), stage_id)

    def target(self, target_id: int) -> Target:
        visible = Target.objects.filter(stage__in=Stage.objects.visible_to(self.user))
        return self.load(visible.select_related("stage__plan__cluster"), target_id)

    def driver_object(self, driver_object_id: int) -> DriverObject:
        return self.load(DriverObject.objects.visible_to(self.user).select_related("cluster"), driver_object_id)

    def may(self, permission: Permission, on: Any) -> None:
        """Checks the permission on the cluster of the plan or driver object.

        :raises NotAllowed: when the caller lacks it
        """
        require(self.user, permission, cluster_id=on.cluster_id, where=f"cluster {on.cluster.name}")
