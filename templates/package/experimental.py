import os

if os.environ.get("KERNELS_EXPERIMENTAL") != "1":
    raise ImportError(
        "this kernel is experimental: set KERNELS_EXPERIMENTAL=1 in the environment to use it"
    )

