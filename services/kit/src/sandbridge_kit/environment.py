"""A process's settings from its `SANDBRIDGE_*` variables; only `__main__` modules hand the environment in."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from sandbridge_kit.config import SettingsError
from sandbridge_kit.rpc.tls import TlsFiles

PREFIX = "SANDBRIDGE_"


def _address(text: str) -> str:
    found = re.fullmatch(r"(?:[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})", text)
    if found is None or int(found[1]) > 65_535:
        # Without a port gRPC would silently take 443.
        raise ValueError("this is not HOST:PORT, such as 0.0.0.0:7402 or [::]:7402")
    return text


ListenAddress: TypeAlias = Annotated[str, AfterValidator(_address)]
"""`host:port` to listen on; port 0 takes a free one."""


class ServiceSettings(BaseModel):
    """What every service process has: where it listens, and who it is. Times in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: ListenAddress = "127.0.0.1:7400"
    """`host:port` to listen on; port 0 takes a free one."""
    tls_dir: Path | None = None
    """Directory with `tls.crt`, `tls.key` and `ca.crt`, such as a mounted Secret."""
    tls_certificate: Path | None = None
    """The certificate, where it does not lie there under that name."""
    tls_key: Path | None = None
    """The private key, likewise."""
    tls_authorities: Path | None = None
    """The authorities to trust, likewise; several while they are rotated."""
    grace_s: Annotated[float, Field(ge=0, le=3600)] = 30.0
    """How many seconds calls under way may go on after a SIGTERM."""

    @property
    def tls(self) -> TlsFiles:
        """The certificate files. Raises SettingsError where they are not all named."""
        usual = TlsFiles.in_folder(self.tls_dir) if self.tls_dir is not None else None
        certificate = self.tls_certificate or (usual.certificate if usual else None)
        key = self.tls_key or (usual.key if usual else None)
        authorities = self.tls_authorities or (usual.authorities if usual else None)
        if certificate is None or key is None or authorities is None:
            raise SettingsError(
                f"{PREFIX}TLS_DIR is not set: services talk over mutual TLS only. Name the directory that holds "
                f"tls.crt, tls.key and ca.crt, or each file by {PREFIX}TLS_CERTIFICATE, _TLS_KEY and _TLS_AUTHORITIES."
            )
        return TlsFiles(certificate, key, authorities)


M = TypeVar("M", bound=BaseModel)


def settings_from(model: type[M], environ: Mapping[str, str]) -> M:
    """Return the settings in the variables; each field `slots` is read from `SANDBRIDGE_SLOTS`.

    Raises SettingsError, one line for each problem, for values that do not fit and for names that are nearly right.
    Other variables with the prefix are left alone: Kubernetes itself makes some, after the names of Services.
    """
    fields = {f"{PREFIX}{name.upper()}": name for name in model.model_fields}
    given = {fields[name]: value for name, value in environ.items() if name in fields and value != ""}
    problems = [
        f"{name}: there is no such setting; did you mean {near[0]}?"
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in fields and (near := difflib.get_close_matches(name, fields, 1, 0.9))
    ]
    try:
        settings = model.model_validate(given)
    except ValidationError as error:
        # Values are not quoted: a secret may stand in the wrong variable.
        problems += [_problem(one["loc"], one["msg"]) for one in error.errors(include_input=False)]
        raise SettingsError("; ".join(problems)) from None
    if problems:
        raise SettingsError("; ".join(problems))
    return settings


def _problem(place: tuple[int | str, ...], text: str) -> str:
    reason = text.removeprefix("Value error, ")
    return f"{PREFIX}{str(place[0]).upper()}: {reason}" if place else reason
