"""SGLang's command-line flags as far as the embedded server takes them, and which versions know them."""

from typing import Final, NamedTuple

from packaging.version import Version


class Span(NamedTuple):
    """Versions that know a flag: from the first to before the second; None is open."""

    since: Version | None = None
    until: Version | None = None

    def holds(self, version: Version) -> bool:
        return (self.since is None or version >= self.since) and (self.until is None or version < self.until)


SPANS: Final[dict[str, Span]] = {
    "--cuda-graph-max-bs": Span(until=Version("0.5.20")),
    "--cuda-graph-bs": Span(until=Version("0.5.20")),
    "--disable-decode-cuda-graph": Span(since=Version("0.5.14")),
    "--disable-prefill-cuda-graph": Span(since=Version("0.5.14")),
    "--cuda-graph-max-bs-decode": Span(since=Version("0.5.14")),
    "--cuda-graph-max-bs-prefill": Span(since=Version("0.5.14")),
    "--cuda-graph-bs-decode": Span(since=Version("0.5.14")),
    "--cuda-graph-bs-prefill": Span(since=Version("0.5.14")),
    "--cuda-graph-backend-decode": Span(since=Version("0.5.19")),
    "--cuda-graph-backend-prefill": Span(since=Version("0.5.19")),
    "--speculative-ngram-max-match-window-size": Span(since=Version("0.5.3"), until=Version("0.5.12")),
    "--speculative-ngram-min-match-window-size": Span(since=Version("0.5.3"), until=Version("0.5.12")),
    "--speculative-ngram-branch-length": Span(since=Version("0.5.3"), until=Version("0.5.12")),
    "--speculative-ngram-max-trie-depth": Span(since=Version("0.5.12")),
    "--speculative-ngram-external-corpus-path": Span(since=Version("0.5.12")),
    "--speculative-adaptive": Span(since=Version("0.5.12")),
    "--attn-dp-size": Span(since=Version("0.5.23")),
}
"""A flag that is not here is known to every version from 0.4.6 on. Read from the package sources."""

SWITCHES: Final = (
    "--trust-remote-code",
    "--enable-dp-attention",
    "--enable-ep-moe",
    "--enable-mixed-chunk",
    "--enable-torch-compile",
    "--enable-p2p-check",
    "--enable-nan-detection",
    "--enable-memory-saver",
    "--enable-hierarchical-cache",
    "--enable-metrics-for-all-schedulers",
    "--enable-mfu-metrics",
    "--enable-multimodal",
    "--enable-multi-layer-eagle",
    "--disable-cuda-graph-padding",
    "--disable-custom-all-reduce",
    "--disable-overlap-schedule",
    "--disable-chunked-prefix-cache",
    "--disable-prefill-cuda-graph",
    "--skip-server-warmup",
    "--skip-tokenizer-init",
    "--stream-output",
    "--log-requests",
    "--speculative-adaptive",
    "--speculative-use-rejection-sampling",
    "--speculative-use-block-verification",
)
"""Taken and kept, without effect on the embedded server."""

VALUES: Final = (
    "--attention-backend",
    "--attn-dp-size",
    "--base-gpu-id",
    "--chat-template",
    "--cuda-graph-backend-prefill",
    "--cuda-graph-bs-prefill",
    "--cuda-graph-max-bs-prefill",
    "--decode-attention-backend",
    "--device",
    "--disaggregation-mode",
    "--dist-init-addr",
    "--dtype",
    "--ep-size",
    "--fp8-gemm-backend",
    "--grammar-backend",
    "--kv-cache-dtype",
    "--load-format",
    "--log-level-http",
    "--log-requests-level",
    "--max-prefill-tokens",
    "--max-total-tokens",
    "--mm-attention-backend",
    "--moe-a2a-backend",
    "--moe-runner-backend",
    "--nccl-port",
    "--nnodes",
    "--node-rank",
    "--num-continuous-decode-steps",
    "--page-size",
    "--pp-size",
    "--prefill-attention-backend",
    "--quantization",
    "--random-seed",
    "--reasoning-parser",
    "--revision",
    "--sampling-backend",
    "--schedule-conservativeness",
    "--schedule-policy",
    "--speculative-accept-threshold-acc",
    "--speculative-accept-threshold-single",
    "--speculative-attention-mode",
    "--speculative-dflash-block-size",
    "--speculative-draft-attention-backend",
    "--speculative-draft-load-format",
    "--speculative-draft-model-quantization",
    "--speculative-draft-model-revision",
    "--speculative-ngram-branch-length",
    "--speculative-ngram-capacity",
    "--speculative-ngram-external-corpus-path",
    "--speculative-ngram-match-type",
    "--speculative-ngram-max-bfs-breadth",
    "--speculative-ngram-min-bfs-breadth",
    "--speculative-ngram-min-match-window-size",
    "--speculative-token-map",
    "--stream-interval",
    "--tokenizer-mode",
    "--tokenizer-path",
    "--tool-call-parser",
    "--watchdog-timeout",
)
"""Taken with one value and kept, without effect on the embedded server."""


def known(flag: str, version: Version) -> bool:
    """Whether this version's parser has the flag."""
    return SPANS.get(flag, Span()).holds(version)
