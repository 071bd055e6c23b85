from maintenance.models.automatic import AutomaticDecision, AutomaticQuarantine
from maintenance.models.case import NodeCase
from maintenance.models.repair import Repair, RepairReceiver

__all__ = ["AutomaticDecision", "AutomaticQuarantine", "NodeCase", "Repair", "RepairReceiver"]
