"""Which engines this machine runs, for suites that start the product as its users do."""

from __future__ import annotations

import functools
from pathlib import Path

from subjects import ENGINES, RUNTIMES, Subject, every_subject, is_installed


@functools.cache
def trouble(subject: Subject) -> str | None:
    """Return why the engine cannot be used here; None where it can. Prepares the engine, once."""
    if not is_installed(subject):
        return f"{subject.name} is not part of this installation"
    try:
        engine = subject.make()
        engine.prepare()
        engine.dispose()
    except OSError as refused:
        return f"{subject.name} is refused here: {refused}"
    return None


def subjects_of_the_command() -> tuple[Subject, ...]:
    """Return the engines that the command is tested with: each once, gVisor with the runtime that it has by default."""
    return tuple(s for s in every_subject() if s.name in ("deno", "node", "gvisor-deno") and is_installed(s))


def flags(subject: Subject) -> tuple[str, ...]:
    """Return the arguments that choose it."""
    more = ("--runtime", subject.runtime, "--allow-outdated-runsc") if subject.engine == "gvisor" else ()
    return ("--engine", subject.engine, *more)


def chosen(engines: str, runtimes: str, runsc: str | None) -> tuple[list[Subject], dict[str, str]]:
    """Return the subjects that run here, and those that do not with the reason."""
    wanted = [name for name in engines.split(",") if name] or [name for name in ENGINES if name != "microsandbox"]
    every = every_subject(runtimes.split(",") if runtimes else RUNTIMES, Path(runsc) if runsc else None)
    asked = [subject for subject in every if subject.engine in wanted]
    troubles = {subject.name: reason for subject in asked if (reason := trouble(subject))}
    return [subject for subject in asked if subject.name not in troubles], troubles
