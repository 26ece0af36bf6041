"""How the audit trail is kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sandbridge_kit.config.base import Section


class AuditSettings(Section):
    """How the audit trail is kept. Where it goes is a setting of the process."""

    key_file: str | None = None
    """The verifier's public key; by default the one beside the audit file, made there where there is none."""
    anchors_file: str | None = None
    """Where start, end and checkpoints go as well; `stderr` and `stdout` are these streams."""
    checkpoint_s: Annotated[float, Field(ge=1, le=3_600)] = 60
    file_mib: Annotated[int, Field(ge=1, le=10_240)] = 64
    """Size at which a file is full."""
    files: Annotated[int, Field(ge=1, le=10_000)] = 16
    """Full files kept; the oldest go first."""
    days: Annotated[int, Field(ge=1, le=3_650)] | None = None
    """Full files that are older go too."""
    required: bool = True
    """Refuse calls that cannot be recorded."""
    fsync: bool = False
    """Wait for the disk before a call that changes something goes out."""
    texts: bool = True
    """Keep the text of scripts and queries; their digests are always kept."""
