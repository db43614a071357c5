"""How tests start ranks with Open MPI's mpirun."""
import os
import subprocess

LIMIT = 55  # seconds, of each run


def environment():
    """Ours without what another launcher or Convoy's own variables would say."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CONVOY_", "OMPI_", "PMI", "SLURM_"))}
    # MALLOC_PERTURB_: mpirun of Open MPI 4.1.4 reads memory that it has freed when a rank fails.
    for name in ("RANK", "WORLD_SIZE", "MALLOC_PERTURB_"):
        kept.pop(name, None)
    kept.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
    return kept


def run_once(command, variables, limit):
    with subprocess.Popen(
        command, env={**environment(), **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.terminate()  # mpirun ends its ranks; killed, it would leave them
            stdout, stderr = process.communicate(timeout=10)
            stderr += f"mpirun: still running after {limit} s\n"
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def mpirun(*words, limit=LIMIT, **variables):
    """Runs `mpirun words`; its output is text. After `limit` seconds it is ended with all ranks.

    Where ranks fail, Open MPI 4.1.4's mpirun now and then crashes in its last function: such a run is made again.
    """
    command = ["mpirun", "--bind-to", "none", "--oversubscribe", *words]
    for _ in range(3):
        done = run_once(command, variables, limit)
        if "PMIx_server_finalize" not in done.stderr:
            break
    return done
