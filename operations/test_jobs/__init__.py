"""Test Jobs on nodes, and the manifest and status of every Job of Quarterdeck."""
