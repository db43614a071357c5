"""How tests start ranks with Open MPI's mpirun."""
import os
import subprocess

LIMIT = 55  # seconds, of each run


def environment():
    """Ours without what another launcher or Convoy's own variables would say."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CONVOY_", "OMPI_", "PMI", "SLURM_"))}
    for name in ("RANK", "WORLD_SIZE"):
        kept.pop(name, None)
    kept.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
    return kept


def mpirun(*words, **variables):
    """Runs `mpirun words`; its output is text. After the limit it is ended with all ranks."""
    command = ["mpirun", "--bind-to", "none", "--oversubscribe", *words]
    with subprocess.Popen(
        command, env={**environment(), **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.terminate()  # mpirun ends its ranks; killed, it would leave them
            stdout, stderr = process.communicate(timeout=10)
            stderr += f"mpirun: still running after {LIMIT} s\n"
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)
