"""What can be set about a docs-search process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from sandbridge_kit.environment import ListenAddress, ServiceSettings


class DocsSettings(ServiceSettings):
    """The APIs themselves stand in the config file."""

    address: ListenAddress = "127.0.0.1:7401"
    """`host:port` to listen on."""
    config: Path
    """The config file: the `spec` of an McpDeployment, of which `apis[].name` and `apis[].openapi` are read."""
    poll_s: Annotated[float, Field(ge=0.05, le=3600)] = 2.0
    """How often, in seconds, the config file and the documents are looked at for changes."""
    cache_dir: Path | None = None
    """A directory of its own for indexes kept between starts, mode 0700 or yet to be made; without it none is kept."""
