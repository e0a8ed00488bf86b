"""Commands that print real help texts, as the installed ones do, without their imports."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.collectors.helps import BENCH_28, ROUTER_15, SERVE_28


def script(path: Path, body: str) -> tuple[str, ...]:
    """A command in this interpreter; each call leaves a line beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!{sys.executable}\n"
        "import sys, time, pathlib\n"
        f"calls = pathlib.Path({str(path) + '.calls'!r})\n"
        'with calls.open("a") as file: file.write(" ".join(sys.argv[1:]) + "\\n")\n'
        f"{body}\n"
    )
    path.chmod(0o755)
    return (str(path),)


def calls(command: tuple[str, ...]) -> list[str]:
    """The words of each call."""
    path = Path(command[0] + ".calls")
    return path.read_text().splitlines() if path.exists() else []


def vllm(folder: Path) -> tuple[str, ...]:
    """`vllm`, with the help of 0.28.0."""
    serve, bench = folder / "serve.txt", folder / "bench.txt"
    folder.mkdir(parents=True, exist_ok=True)
    serve.write_text(SERVE_28)
    bench.write_text(BENCH_28)
    texts = {"serve --help=all": str(serve), "bench serve --help=all": str(bench)}
    return script(
        folder / "vllm",
        f"print(pathlib.Path({texts!r}[' '.join(sys.argv[1:])]).read_text())",
    )


def router(folder: Path) -> tuple[str, ...]:
    """`vllm-router`, with the help of 0.1.15."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "router.txt"
    text.write_text(ROUTER_15)
    return script(folder / "vllm-router", f"print(pathlib.Path({str(text)!r}).read_text())")
