"""The changes of nodes, once for everybody: freezes, the ledger of disruption, the right to write to a cluster."""
