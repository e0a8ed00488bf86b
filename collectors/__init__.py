"""What a collector leaves behind: the contract of a run folder.

Collectors run benchmarks on a live server and write results; `analysis` reads them. The two
packages never import each other: this folder layout is all that they share.

A run is one call of a load generator against one running server, and has a folder of its own::

    results/<study>/<arm>/<run>/
        run.json     what was run: schema version, study, arm, workload, load, repeat, seed, the
                     order drawn, all command lines, versions, machine; state and SHA-256 of the
                     other files
        bench.json   the load generator's own result; bench-0.json ... of several clients
        metrics-*    each engine's /metrics: in full before and after, samples in between
        gpu.jsonl    samples of clocks, power, memory and use of each GPU
        server.log   what the server printed at its start and during the run; replica-0.log ...
        steps-*      where the server can report it: one record an engine step
        requests-*   where the server can report it: queue, prefill and decode of each request
        spans.jsonl  the same by the server's tracing

The whole logs of servers, and their warm-ups, lie in `<arm>/.servers/`.

Rules:

- A folder is complete when `run.json` says so, and `run.json` is written last and at once (a
  new file renamed over the old). Anything else is an interrupted run, to be repeated.
- Raw output is kept raw. Nothing is averaged, renamed or dropped on the way.
- `bench.json` and `run.json` are required. A missing optional file lowers the level of evidence
  that a statement can reach; it is no error.
- Times are seconds. Clocks are named where they are written (wall or monotonic).
- No file holds a secret: tokens and keys in command lines and environments are masked.
"""
