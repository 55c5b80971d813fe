"""Our own server in SGLang's dialect: HTTP, log, metrics. A process of its own that imports nothing of `execution`.

Two engines stand behind it: `openvino` (real speculative decoding on the CPU) and `simulated` (a stated cost model).
"""
