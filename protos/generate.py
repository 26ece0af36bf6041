"""Generate Python from the .proto files: `python protos/generate.py`; with `--check`, only say what differs."""

import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
TARGET = HERE / "src"
BIN = Path(sys.executable).parent
PLUGINS = [f"--plugin={name}={BIN / name}" for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")]


def generated(out: Path) -> dict[Path, bytes]:
    """Return path below `protos/src` → content of every file that protoc writes into `out`."""
    includes = [f"-I{HERE}", f"-I{Path(protoc.__file__).parent / '_proto'}"]
    outputs = [
        f"--python_out={out}",
        f"--grpc_python_out={out}",
        f"--mypy_out=quiet:{out}",
        f"--mypy_grpc_out=quiet:{out}",
    ]
    sources = sorted(str(path.relative_to(HERE)) for path in (HERE / "sandbridge").rglob("*.proto"))
    if protoc.main(["protoc", *includes, *PLUGINS, *outputs, *sources]):
        sys.exit("protoc refused the .proto files; its messages are above.")
    return {path.relative_to(out): path.read_bytes() for path in out.rglob("*.py*")}


with tempfile.TemporaryDirectory() as directory:
    wanted = generated(Path(directory))
present = {path.relative_to(TARGET): path.read_bytes() for path in TARGET.rglob("*_pb2*.py*") if path.suffix != ".pyc"}
stale = sorted(path for path in wanted.keys() | present.keys() if wanted.get(path) != present.get(path))
if stale and "--check" in sys.argv[1:]:
    sys.exit(f"Not what the .proto files give: {', '.join(map(str, stale))}. Run `make protos`.")
for path in stale:
    (TARGET / path).parent.mkdir(parents=True, exist_ok=True)
    (TARGET / path).write_bytes(wanted[path]) if path in wanted else (TARGET / path).unlink()
