from maintenance.models.automatic import AutomaticDecision, AutomaticQuarantine
from maintenance.models.case import NodeCase
from maintenance.models.repair import Repair, RepairKinds, RepairReceiver

__all__ = ["AutomaticDecision", "AutomaticQuarantine", "NodeCase", "Repair", "RepairKinds", "RepairReceiver"]
