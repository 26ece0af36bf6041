"""The forms in which an egress policy is printed."""

from __future__ import annotations

from typing import Literal, TypeAlias

PolicyFormat: TypeAlias = Literal["json", "srt", "networkpolicy", "cilium"]
