"""Messages that name why a vLLM server died, each with its code, its sentence and what to do."""

import re

from specbench.dialects.messages import COLLECTIVE_TIMEOUT, SHARED_CAUSES, WIDTH_MISMATCH, cause

FAULT = re.compile(
    r"\bERROR\b|^(?:\([^)]*\) )?[A-Za-z_][\w.]*(?:Error|Exception)\b(?::|$)|error: |\bValue error, |\[Errno|CUDA error|NCCL"
)
"""Lines that report a fault; only they are searched for a cause."""


GIB = r"(\d{1,9}(?:\.\d{1,9})?)"
CAUSES = (
    cause(
        "gpu_memory_not_free",
        r"Free memory on device(?: \S+)? \((?P<free_gib>[\d.]+)/(?P<total_gib>[\d.]+) GiB\) on startup is less than desired "
        r"GPU memory utilization \((?P<utilization_ratio>[\d.]+), (?P<wanted_gib>[\d.]+) GiB\)",
        "the GPU has less free memory than --gpu-memory-utilization asks for: another process holds it",
        "free the GPU (nvidia-smi shows who holds it), choose another one, or lower --gpu-memory-utilization",
    ),
    cause(
        "out_of_memory_graph_capture",
        r"CUDA out of memory occurred when warming up|out of memory.*(?:captur|cuda ?graph)",
        "the GPU ran out of memory while warming up or capturing CUDA graphs",
        "lower --max-num-seqs or --gpu-memory-utilization, or capture fewer graph sizes",
    ),
    cause(
        "out_of_memory",
        r"OutOfMemoryError|CUDA out of memory|CUDA error: out of memory|HIP out of memory",
        "the GPU ran out of memory",
        "lower --gpu-memory-utilization or --max-num-seqs, or spread the model over more GPUs (--tensor-parallel-size)",
    ),
    cause(
        "negative_token_budget",
        r"No available memory for the cache blocks"
        r"|maximum number of tokens that can be stored in KV cache"
        r"|(?P<needed_gib>[\d.]+) GiB KV cache is needed, which is larger than the available KV cache memory"
        r" \((?P<available_gib>[\d.]+) GiB\)",
        "after the weights too little memory is left for the KV cache",
        "raise --gpu-memory-utilization, lower --max-model-len, or spread the model over more GPUs (--tensor-parallel-size)",
    ),
    WIDTH_MISMATCH,
    cause(  # of a head that is given fewer states than its fc takes
        WIDTH_MISMATCH.code,
        r"shape '\[-1, (?P<expected_width>\d+)\]' is invalid for input of size \d+",
        WIDTH_MISMATCH.sentence,
        WIDTH_MISMATCH.advice,
    ),
    cause(
        "weight_shape_mismatch",
        r"Tried to load weights of size torch\.Size\(\[(?P<weight_shape>[\d, ]+)\]\) ?to a parameter of size "
        r"torch\.Size\(\[(?P<wanted_shape>[\d, ]+)\]\)",
        "a weight has another shape than its model's config.json asks for",
        "the config.json belongs to another checkpoint, or the drafter to another target: compare hidden_size, "
        "target_hidden_size and the count of auxiliary layers",
    ),
    cause(
        "target_has_no_draft_hooks",
        r"Model does not support EAGLE-?3 interface|(?:eagle3|Eagle3|EAGLE-?3) is (?:only|not) supported"
        r"|'(?P<model>\w+)' object has no attribute '(?P<attribute>set_aux_hidden_state_layers"
        r"|get_eagle3_(?:default_)?aux_hidden_state_layers)'",
        "this vLLM version can't hand the target's hidden states to an EAGLE-3 drafter",
        "use a newer vLLM, or a drafter of another kind",
    ),
    cause(
        "draft_path_missing",
        r"(?:num_speculative_tokens was provided.*|draft_model|speculative.{0,40})"
        r"(?:without|requires?|must).{0,40}model",
        "the drafter's path is not given",
        'add "model" to --speculative-config (in a suite: `drafter`)',
    ),
    cause(
        "path_missing",
        r"(?P<path>[^\s':]+)'? is not a local folder and is not a valid model identifier"
        r"|No such file or directory: '(?P<file>[^']+)'|Repo id must .*?: '(?P<repository>[^']+)'"
        r"|Can't load (?:the configuration of|the model for|tokenizer for) '(?P<source>[^']+)'"
        r"|Invalid repository ID or local directory specified: '(?P<folder>[^']+)'",
        "a model's folder or repository does not exist",
        "check the paths of the model and of the drafter",
    ),
    cause(
        "vocab_mismatch",
        r"Target and draft model should have the same vocabulary size|vocab(?:ulary)?_?size.{0,60}(?:mismatch|differ|same)",
        "target and drafter have different vocabularies",
        "use a drafter that was made for this target's tokenizer",
    ),
    cause(
        "kv_cache_dtype_mismatch",
        r"(?i)kv[_ -]?cache[^:]{0,60}dtype[^:]{0,60}(?:mismatch|unsupported|not supported)"
        r"|source and destination dtypes match, got (?P<destination_dtype>\w+)",
        "the KV cache's number format does not suit this attention backend or drafter",
        "set --kv-cache-dtype auto, or another attention backend",
    ),
    cause(
        "bad_flag",
        r"error: (?P<complaint>(?:unrecognized arguments|argument |ambiguous option|the following arguments).*)",
        "the server does not take one of its flags",
        "flags differ between vLLM versions; check `args` of the variant",
    ),
    cause(
        "package_missing",
        r"(?:ModuleNotFoundError|ImportError): No module named '(?P<module>[\w.]+)'",
        "a package is missing",
    ),
    cause(
        "port_in_use",
        r"\[Errno 98\]|[Aa]ddress already in use|EADDRINUSE|[Pp]ort (?P<port>\d+) is already in use",
        "its port is held by another process",
        "choose another --port, or end the process that holds it",
    ),
    *SHARED_CAUSES,
    COLLECTIVE_TIMEOUT,
    cause(
        "engine_hung",
        r"TimeoutError: RPC call to \S+ timed out",
        "a forward pass hung",
        "look at what each worker did last; VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS gives more time where a step is only slow",
        1,
    ),
    cause(
        "subprocess_crashed",
        r"(?:Engine core proc|Worker proc) (?P<process>\S+) died unexpectedly",
        "one of the server's processes was ended from outside or crashed",
        "the system may have ended it for want of memory (dmesg)",
        1,
    ),
    cause(
        "nccl_error",
        r"NCCL error|nccl\w+Error|DistBackendError|DistNetworkError|DistStoreError",
        "the GPUs could not talk to each other (NCCL)",
        "look at the first rank that failed; NCCL_DEBUG=INFO tells more",
        1,
    ),
)
CONSEQUENCE = re.compile(
    r"Engine core initialization failed|EngineDeadError|EngineCore (?:encountered|failed)"
    r"|Worker failed with error|Engine process failed"
)
"""What other processes print once one of them has died."""


def is_fault(line: str) -> bool:
    """Whether a line may name a cause."""
    return FAULT.search(line) is not None


def cause_code(text: str) -> str | None:
    """The code of the first cause that a message names."""
    return next((cause.code for cause in CAUSES if cause.pattern.search(text)), None)
