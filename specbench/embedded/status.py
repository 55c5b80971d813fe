"""`/server_info` and `/metrics`: what the server says of itself, from the log's own counters."""

from typing import Any

from specbench.dialects.sglang_version import parse as parse_version
from specbench.embedded.dialect import DialectLog
from specbench.embedded.interface import Backend, EngineFacts

LIST_OF_STATES_SINCE = parse_version("0.4.6.post5")


def server_info(facts: EngineFacts, log: DialectLog) -> dict[str, Any]:
    """Resolved arguments, the version, and the internal state: flat before 0.4.6.post5, one a rank in a list since."""
    state: dict[str, Any] = dict(facts.resolved)
    state["last_gen_throughput"] = log.last_gen_throughput_tps
    state["memory_usage"] = {"weight": facts.weight_gb, "token_capacity": facts.capacity_tokens}
    state["effective_max_running_requests_per_dp"] = facts.max_running_requests
    if log.avg_spec_accept_length is not None:
        state["avg_spec_accept_length"] = log.avg_spec_accept_length
    version = parse_version(facts.dialect_version)
    info = dict(facts.resolved)
    info |= {"version": facts.dialect_version, "max_total_num_tokens": facts.capacity_tokens} | facts.extra
    if facts.simulated:
        info["simulated"] = "SIMULATED"
    if version is not None and LIST_OF_STATES_SINCE is not None and version < LIST_OF_STATES_SINCE:
        return info | state
    return info | {"internal_states": [state]}


def metrics_text(backend: Backend, log: DialectLog) -> str:
    """Prometheus text under SGLang's names. The `spec_*` gauges hold the last decode line's interval only."""
    facts, step = backend.facts, log.last_step
    gauges: dict[str, float] = {
        "gen_throughput": log.last_gen_throughput_tps,
        "num_running_reqs": backend.running_requests,
        "num_queue_reqs": backend.queue_requests,
        "num_used_tokens": step.used_tokens if step else 0,
        "token_usage": step.used_tokens / facts.capacity_tokens if step else 0.0,
        "is_cuda_graph": float(step.graph) if step else 0.0,
    }
    if log.last_acceptance is not None:
        gauges["spec_accept_length"] = log.last_acceptance.length
        ceiling = log.last_acceptance.verify_count * max(1, facts.draft_tokens - 1)
        gauges["spec_accept_rate"] = log.last_acceptance.correct_tokens / ceiling
    lines = ["# SIMULATED"] if facts.simulated else []
    labels = f'{{model_name="{_escaped(facts.served_model_name)}",engine_type="unified",tp_rank="0",pp_rank="0"}}'
    for name, value in gauges.items():
        lines += [f"# TYPE sglang:{name} gauge", f"sglang:{name}{labels} {value}"]
    for name, total in log.totals.items():
        lines += [f"# TYPE sglang:{name} counter", f"sglang:{name}{labels} {total}"]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
