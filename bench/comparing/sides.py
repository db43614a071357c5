"""The two kinds of sides that take turns: Convoy's command, started for each turn, and a PyTorch peer that stays.

A turn gives numbers by key. Keys are names of rows, and names of facts that a row tells besides (share_of_peak).
"""
import contextlib
import os
import socket

from .machine import ROOT, environment
from .processes import CompareError, Peer, as_text, run

PEERS = os.path.join(ROOT, "bench", "peers")


class Command:
    """A program that measures once and ends; `read` makes numbers of its lines."""

    stays = False

    def __init__(self, name, command, read, limit, cores=None):
        self.name, self.command, self.read, self.limit, self.cores = name, command, read, limit, cores

    def text(self):
        return as_text(self.command)

    @contextlib.contextmanager
    def ready(self):
        yield lambda: numbers(self.read, run(self.command, environment(), self.limit, self.cores), self.command)


class Script:
    """A script of bench/peers, as `ranks` processes."""

    stays = True

    def __init__(self, name, python, script, flags, read, limit, threads=1, ranks=1, cores=None):
        self.name, self.read, self.limit, self.cores = name, read, limit, cores
        self.command = [python, os.path.join(PEERS, script), *flags, "--turns"]
        self.threads, self.ranks = threads, ranks

    def text(self):
        """As it may be repeated by hand."""
        ranks = f"OMP_NUM_THREADS=1 torchrun --nproc-per-node {self.ranks}" if self.ranks > 1 else "python"
        return ranks + " " + as_text([os.path.relpath(self.command[1], ROOT), *self.command[2:-1]])

    def environments(self):
        more = {"OMP_NUM_THREADS": str(self.threads), "PYTHONDONTWRITEBYTECODE": "1"}
        if self.ranks > 1:
            more |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(self.ranks)}
            more |= {"GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo")}
        return [environment(**more, RANK=str(k), LOCAL_RANK=str(k)) for k in range(self.ranks)]

    @contextlib.contextmanager
    def ready(self):
        with Peer(self.command, self.environments(), self.limit, self.cores) as peer:
            yield lambda: numbers(self.read, peer.turn(), self.command)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def numbers(read, lines, command):
    try:
        found = read(lines)
    except (KeyError, IndexError, TypeError, ValueError, StopIteration) as error:
        raise CompareError(f"not the lines that were expected ({error!r}): {as_text(command)}") from error
    if not found:
        raise CompareError(f"nothing measured: {as_text(command)}")
    return found
