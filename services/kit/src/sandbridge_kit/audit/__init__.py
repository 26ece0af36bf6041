"""The audit trail: who writes it can only go forward, who verifies it can tell what was done to it.

`chain` and `verify` are pure; `keys` seals what only a verifier may open; `sink` and `trail` write.
docs/reference/audit.md tells the format.
"""
