from maintenance.models.automatic import AutomaticDecision, AutomaticQuarantine
from maintenance.models.case import NodeCase
from maintenance.models.new_nodes import NewNodeGate
from maintenance.models.repair import Repair, RepairKinds, RepairReceiver
