"""Test Jobs on changed nodes, and the manifest and status of every Job of Quarterdeck."""
