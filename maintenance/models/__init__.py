from maintenance.models.automatic import AutomaticDecision, AutomaticQuarantine
from maintenance.models.case import NodeCase
from maintenance.models.repair import Repair

__all__ = ["AutomaticDecision", "AutomaticQuarantine", "NodeCase", "Repair"]
