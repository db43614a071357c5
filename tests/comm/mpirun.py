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


def mpirun(*words):
    """Runs `mpirun words`; its output is text."""
    command = ["mpirun", "--bind-to", "none", "--oversubscribe", *words]
    return subprocess.run(command, env=environment(), capture_output=True, timeout=LIMIT, check=False, text=True)
