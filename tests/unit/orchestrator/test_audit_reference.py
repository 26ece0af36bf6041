"""The reference of the audit trail names every member of every record, and none besides."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from sandbridge_orchestrator.adapters.audit import EVENTS

ROW = re.compile(r"^\| (`[^|]+`) \| ((?:`\w+`(?:, )?)+|all) \| ", re.MULTILINE)


def test_the_reference_names_every_member_of_every_record() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "audit.md"
    stated = {
        (event, member)
        for members, events in ROW.findall(page.read_text(encoding="utf-8"))
        for event in (EVENTS.values() if events == "all" else re.findall(r"\w+", events))
        for member in re.findall(r"\w+", members)
    }
    caller = ("issuer", "sub", "client")

    written = {
        (event, name)
        for record, event in EVENTS.items()
        for member in fields(record)
        for name in (caller if member.name == "caller" else (member.name,))
    }

    assert stated == written
