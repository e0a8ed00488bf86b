"""Real help texts, and the dialects that they describe."""

from __future__ import annotations

from pathlib import Path

from collectors import command_check, help_texts
from collectors.flags import Dialect
from collectors.help_texts import BENCH, ROUTER, SERVE, Help

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "results/writeup/help"
DATA = ROOT / "tests/data/help"

SERVE_28 = (SHIPPED / "vllm-serve-help-all.txt").read_text("utf-8")
BENCH_28 = (SHIPPED / "vllm-bench-serve-help-all.txt").read_text("utf-8")
SERVE_32 = (DATA / "vllm-serve-0.32.0-excerpt.txt").read_text("utf-8")
ROUTER_15 = (SHIPPED / "vllm-router-0.1.15-help.txt").read_text("utf-8")
ROUTER_17 = (DATA / "vllm-router-0.1.17-help.txt").read_text("utf-8")


def answers(router: str = ROUTER_15, serve: str = SERVE_28) -> help_texts.Answers:
    """As the installed commands would give them."""
    return {
        SERVE: Help(SERVE, serve, "0.28.0"),
        BENCH: Help(BENCH, BENCH_28, "0.28.0"),
        ROUTER: Help(ROUTER, router, "0.1.15"),
    }


def dialect(name: str, router: str = ROUTER_15, serve: str = SERVE_28) -> Dialect:
    """What one command takes."""
    return command_check.dialects(answers(router, serve))[name]
