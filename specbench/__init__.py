"""specbench: the speculative-decoding benchmark.

One way through the house, and imports run only along it:

    suite   YAML to a resolved `Suite`
    plan    `Suite` to a `Plan` of `Trial`s; pure
    placement which GPUs a launch gets, and which launch is next; pure
    records what was seen, as stored: `RequestRecord`, `Observation`, `TrialRecord`, `RunRecord`
    timing  tokens, TTFT and TPOT of one record: what load and analysis must agree on
    store   the results folder
    streams a stored run read in passing, however large, for `compare`
    processes   the system's table of processes: who still runs, and which one a stored pid really names
    nights  a suite's nights: history, pinned reference, lock, the runs that are kept
    dialects    what servers speak: their log, line by line, and their HTTP, event by event
    models      where a suite's models come from: a folder, the hub, or made here
    datasets, engines   one file each, found by name
    embedded    our own server in SGLang's dialect, a process of its own: OpenVINO GenAI (real) or a cost model (simulated)
    checkpoints what a target and a drafter say of themselves, without their weights
    execution   the only effects: leases a slot, launches a server, drives load, stores records
    analysis    records to a `Judgement`; pure
    render      a `Judgement` to terminal, Markdown, JSON, plots and one HTML file; pure
    preflight   a launch against its checkpoints and its load, before it starts: pure
    cli     one file a verb

`execution` and `analysis` meet only through records.
"""

import pkgutil

__path__ = pkgutil.extend_path(__path__, __name__)
__version__ = "0.1.0"
