"""PyTorch's products on an AMD with the kernels that MKL keeps for processors of Intel.

MKL, with which PyTorch multiplies, asks a function of its own whether the processor is Intel's. If
not, it takes kernels for AVX2 though the processor has AVX-512; NumPy's OpenBLAS does not. With
that function replaced both have equal products, and what remains of a difference is ours.
"""

import shutil
import subprocess
from pathlib import Path

SOURCE = "int mkl_serv_intel_cpu_true(void) { return 1; }\n"


def environment(folder):
    """Return the variables of such a process; none without a compiler, or where nothing is wanting.

    The library is built in `folder`.
    """
    cpuinfo, compiler = Path("/proc/cpuinfo"), shutil.which("cc")
    known = cpuinfo.read_text() if cpuinfo.is_file() else ""
    if compiler is None or "AuthenticAMD" not in known or "avx512f" not in known:
        return {}
    source, library = Path(folder) / "intel.c", Path(folder) / "intel.so"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}
