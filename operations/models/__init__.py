from operations.models.disruption import Disruption, DomainBudget
from operations.models.external_work import ExternalWork
from operations.models.freeze import Freeze
from operations.models.maintenance_request import MaintenanceRequest
from operations.models.operation import Operation, OperationNode, Quarantine
from operations.models.test_job import NodeTestJob
from operations.models.writer_lease import WriterLease
