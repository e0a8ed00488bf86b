"""Flags that vLLM once had, and what takes their place; and the two dialects of "vllm-router".

Each entry was looked up in the help texts of vLLM 0.26.0, 0.28.0 and 0.32.0 and of vllm-router
0.1.15 and 0.1.17; a test does it again for the ones that ship. A flag that the installed help
knows is never looked for here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Successor:
    """What to write in a flag's place."""

    flag: str
    """The flag that does it now; empty: none is needed."""
    say: str


_GONE = "drop it"

SERVE: Mapping[str, Successor] = {
    "--disable-log-requests": Successor(
        "--no-enable-log-requests", "drop it: requests are logged only with --enable-log-requests"
    ),
    "--swap-space": Successor("", "drop it: preempted requests are recomputed, never swapped"),
    "--preemption-mode": Successor("", "drop it: preempted requests are always recomputed"),
    "--num-scheduler-steps": Successor("--async-scheduling", "drop it, or use --async-scheduling"),
    "--multi-step-stream-outputs": Successor("", _GONE),
    "--use-v2-block-manager": Successor("", "drop it: there is no other block manager"),
    "--num-lookahead-slots": Successor("", _GONE),
    "--device": Successor("", "drop it: the installed build decides"),
    "--task": Successor("--runner", "use --runner (and --convert)"),
    "--guided-decoding-backend": Successor(
        "--structured-outputs-config", "use --structured-outputs-config.backend"
    ),
    "--cuda-graph-sizes": Successor("--cudagraph-capture-sizes", "use --cudagraph-capture-sizes"),
    "--max-seq-len-to-capture": Successor(
        "--max-cudagraph-capture-size",
        "use --max-cudagraph-capture-size, which counts requests, not tokens",
    ),
    "--speculative-model": Successor("--speculative-config", "use --speculative-config.model"),
    "--num-speculative-tokens": Successor(
        "--speculative-config", "use --speculative-config.num_speculative_tokens"
    ),
    "--rope-scaling": Successor("--hf-overrides", "use --hf-overrides"),
    "--rope-theta": Successor("--hf-overrides", "use --hf-overrides"),
    "--disable-async-output-proc": Successor(
        "--no-async-scheduling", "drop it, or use --no-async-scheduling"
    ),
    "--worker-use-ray": Successor(
        "--distributed-executor-backend", "use --distributed-executor-backend ray"
    ),
    "--enable-reasoning": Successor("--reasoning-parser", "--reasoning-parser alone is enough"),
    "--override-pooler-config": Successor("--pooler-config", "use --pooler-config"),
    "--disable-mm-preprocessor-cache": Successor(
        "--mm-processor-cache-gb", "use --mm-processor-cache-gb 0"
    ),
    "--disable-frontend-multiprocessing": Successor("", _GONE),
    "--calculate-kv-scales": Successor("", _GONE),
    "--quantization-param-path": Successor("", "drop it: scales come with the model"),
    "--max-num-partial-prefills": Successor("", _GONE),
}

KEYS: Mapping[str, str] = {
    "level": "use mode, or -O0 to -O3",
    "use_cudagraph": "use cudagraph_mode",
    "full_cuda_graph": "use cudagraph_mode",
}
"""Keys of --compilation-config that are gone, and what takes their place."""

BENCH: Mapping[str, Successor] = {
    "--endpoint-type": Successor("--backend", "use --backend"),
    "--sonnet-input-len": Successor("--input-len", "use --input-len"),
    "--sonnet-output-len": Successor("--output-len", "use --output-len"),
    "--save-results": Successor("--save-result", "use --save-result"),
}

ROUTER_FLAGS: Mapping[str, Successor] = {
    "--static-backends": Successor(
        "--worker-urls",
        "write --worker-urls A B, with blanks between; the collector does so itself",
    ),
    "--routing-logic": Successor(
        "--policy", 'write --policy round_robin, or router = "round_robin" in the study'
    ),
    "--static-models": Successor("", "drop it: workers say which models they serve"),
    "--session-key": Successor("--policy", "write --policy consistent_hash"),
    "--engine-stats-interval": Successor("", _GONE),
    "--request-stats-window": Successor("", _GONE),
    "--log-stats": Successor("--prometheus-port", "read the counters at --prometheus-port"),
    "--k8s-namespace": Successor(
        "--service-discovery-namespace", "write --service-discovery-namespace"
    ),
    "--k8s-port": Successor("--service-discovery-port", "write --service-discovery-port"),
    "--k8s-label-selector": Successor("--selector", "write --selector KEY=VALUE"),
}
"""Flags of production-stack's router, in the words of the one on PyPI."""

POLICIES: Mapping[str, str] = {
    "roundrobin": "round_robin",
    "session": "consistent_hash",
    "prefixaware": "cache_aware",
    "kvaware": "kv_aware",
}
"""Policies of production-stack's router, by the name of the nearest one on PyPI."""
