"""Messages that name why an SGLang server died, each with its code, its sentence and what to do."""

import re

from specbench.dialects.messages import COLLECTIVE_TIMEOUT, EXCEPTION, SHARED_CAUSES, WIDTH_MISMATCH, cause

FAULT = re.compile(
    EXCEPTION.pattern
    + r"|Capture .*graph failed|ERROR|\[Errno|\S+: error: |\w+ hit an exception|(?:\w+ )?[Ww]atchdog timeout"
    r"|(?:\[[^\]]{0,80}\]:? ?){1,4}Watchdog caught|\w[\w.]*\.OutOfResources: |Rank \d+ scheduler is dead"
    r"|Health check failed|Subprocess |Initialization failed|NCCL |terminate called|  what\(\)"
    r"|.*[Pp]ort \d+ is already in use"
)
"""Beginnings of lines that report a fault; only they are searched for a cause, so that no warning and no flag is one."""


MEMORY_ADVICE = "lower --mem-fraction-static, or free the GPU"
CAUSES = (
    cause(
        "gpu_memory_not_free",
        r"memory capacity is unbalanced(?:.*?pre_model_load_memory=(?P<free_gb>[\d.]+))?"
        r"(?:.*?local_gpu_memory=(?P<here_gb>[\d.]+))?",
        "another process holds memory on one of the GPUs",
        "free the GPUs (nvidia-smi shows who holds them), or choose others",
    ),
    cause(
        "out_of_memory",
        r"OutOfMemoryError|CUDA out of memory|CUDA error: out of memory|HIP out of memory",
        "the GPU ran out of memory",
        MEMORY_ADVICE,
    ),
    cause(
        "negative_token_budget",
        r"Not enough memory\. Please try to increase --mem-fraction-static"
        r"(?:\..*?mem_fraction_static=(?P<mem_fraction_static>[\d.]+))?",
        "after the weights no memory is left for the KV cache",
        "raise --mem-fraction-static, or spread the model over more GPUs (--tp-size)",
    ),
    cause(
        "negative_token_budget",
        r"negative dimension (?P<tokens>-\d+)",
        "after the weights no memory is left for the KV cache: its size came out negative",
        "raise --mem-fraction-static, or spread the model over more GPUs (--tp-size)",
    ),
    cause(
        "kv_cache_dtype_mismatch",
        r"source and destination dtypes match, got (?P<destination_dtype>\w+) for the destination and "
        r"(?P<source_dtype>\w+) for the source",
        "the drafter writes another number format than its KV cache holds",
        "set --kv-cache-dtype auto, or give target and drafter the same --dtype",
    ),
    cause(
        "kv_cache_dtype_mismatch",
        r"[Qq]uery(?: and|, ) ?key.*(?:same|match).*dtype|[Qq]uery,? (?:and )?key.*dtype|dtype of (?:q|query).*(?:k|key)",
        "query and key differ in their number format",
        "set --kv-cache-dtype auto, or give target and drafter the same --dtype",
    ),
    cause(
        "kv_cache_dtype_mismatch",
        r"(?i)(?:kv[_ -]?cache|fp8|float8)[^:]*dtype[^:]*(?:mismatch|match|unsupported|not supported|expected)",
        "the KV cache's number format does not suit this attention backend or drafter",
        "set --kv-cache-dtype auto, or another --attention-backend",
    ),
    WIDTH_MISMATCH,
    cause(
        "target_has_no_draft_hooks",
        r"Model (?P<model>\w+) does not implement (?P<attribute>set_eagle3_layers_to_capture)",
        "this SGLang version can't hand the target's hidden states to an EAGLE-3 drafter",
        "use a newer SGLang, or a drafter of another kind",
    ),
    cause(
        "target_has_no_draft_hooks",
        r"'(?P<model>\w+)' object has no attribute "
        r"'(?P<attribute>set_eagle3_layers_to_capture|get_embed_and_head|set_embed_and_head|get_embed|capture_aux_hidden_states"
        r"|set_dflash_layers_to_capture)'",
        "this SGLang version can't couple a drafter to the target's model class",
        "use a newer SGLang, or a drafter of another kind",
    ),
    cause(
        "draft_path_missing",
        r"requires setting --speculative-draft-model-path",
        "the drafter's path is not given",
        "add --speculative-draft-model-path",
    ),
    cause(
        "no_such_attribute",
        r"AttributeError: '(?P<model>\w+)' object has no attribute '(?P<attribute>\w+)'",
        "a model class lacks what this SGLang version asks of it",
    ),
    cause(
        "path_missing",
        r"(?:OSError|HFValidationError|.*RepositoryNotFoundError|FileNotFoundError|ValueError|EntryNotFoundError).*?"
        r"(?:Can't load (?:the configuration of|the model for|tokenizer for) '(?P<source>[^']+)'"
        r"|(?P<path>\S+) is not a local folder and is not a valid model identifier"
        r"|No such file or directory: '(?P<file>[^']+)'"
        r"|Repo id must .*?: '(?P<repository>[^']+)'"
        r"|Unrecognized model in (?P<folder>\S+?)\.(?: |$))",
        "a model's folder or repository does not exist",
        "check the paths of the model and of the drafter",
    ),
    cause(
        "unknown_speculative_algorithm",
        r"Unknown speculative algorithm name:? *(?P<algorithm>\S+)?",
        "this SGLang version does not know the speculative algorithm",
    ),
    cause(
        "bad_flag",
        r"(?:\S+: )?error: (?P<complaint>(?:unrecognized arguments|argument |ambiguous option|the following arguments).*)",
        "the server does not take one of its flags",
        "flags differ between SGLang versions; check `args` of the variant",
    ),
    cause(
        "draft_context_too_short",
        r"context[_ ]length.*(?:greater|longer|exceeds).*(?:derived|max_position_embeddings|model)",
        "the drafter's context is shorter than the server's",
        "set SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 or lower --context-length",
    ),
    cause(
        "topk_unsupported_by_backend",
        r"speculative_eagle_topk.* > 1|only supports topk = 1",
        "the attention backend does not take more than one branch a draft step",
        "set --speculative-eagle-topk 1, or another --attention-backend",
    ),
    cause(
        "package_missing",
        r"(?:ModuleNotFoundError|ImportError): No module named '(?P<module>[\w.]+)'",
        "a package is missing",
    ),
    cause(
        "port_in_use",
        r"\[Errno 98\].*?(?:address \('(?P<host>[^']*)', (?P<port>\d+)\).*)?$|[Pp]ort (?P<other_port>\d+) is already in use"
        r"|EADDRINUSE|[Aa]ddress already in use|Port (?P<asked_port>\d+) is not available",
        "its port is held by another process",
        "choose another --port (or --nccl-port), or end the process that holds it",
    ),
    cause(
        "graph_capture_failed",
        r"Capture .*graph failed",
        "capturing CUDA graphs failed",
        "run once with CUDA graphs off to see whether the rest works",
    ),
    *SHARED_CAUSES,
    cause(
        "kv_cache_full",
        r"Decode out of memory\. Try to lower your batch size",
        "the KV cache could not hold what was running",
        "lower --max-running-requests, or raise --mem-fraction-static",
    ),
    COLLECTIVE_TIMEOUT,
    cause(
        "nccl_error",
        r"NCCL error|nccl\w+Error|DistBackendError|DistNetworkError|DistStoreError",
        "the GPUs could not talk to each other (NCCL)",
        "look at the first rank that failed; NCCL_DEBUG=INFO tells more",
        1,
    ),
    cause(
        "watchdog_timeout",
        r"[Ww]atchdog timeout \([\w.]*watchdog_timeout=(?P<timeout_s>[\d.]+)",
        "a forward pass hung",
        "look at the py-spy dump behind it and at the other ranks; if the load was only heavy, raise --watchdog-timeout",
        1,
    ),
    cause("warmup_failed", r"Initialization failed\. warmup error", "the server's own warm-up request failed", "", 1),
    cause("health_check_failed", r"Health check failed\.", "the server stopped answering its own health check", "", 1),
    cause(
        "subprocess_crashed",
        r"Subprocess (?P<process>\S+) \(pid=(?P<pid>\d+)\) crashed with exit code (?P<exit_code>-?\d+)",
        "one of the server's processes was ended from outside or crashed",
        "exit code -9: the system may have ended it for want of memory (dmesg); -11: a crash in native code",
        1,
    ),
    cause(
        "subprocess_crashed",
        r"Rank (?P<rank>\d+) scheduler is dead",
        "a scheduler process was ended from outside or crashed",
        "its exit code stands below; -9: the system may have ended it for want of memory (dmesg)",
        1,
    ),
)


def cause_code(text: str) -> str | None:
    """The code of the first cause that a message names."""
    return next((cause.code for cause in CAUSES if cause.pattern.search(text)), None)
