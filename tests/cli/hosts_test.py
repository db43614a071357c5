#!/usr/bin/env python3
"""What hosts and launchers differ in: the user root, cores, network interfaces, Slurm.

Usage: hosts_test.py PROGRAM TROUBLE [names of tests]
"""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import ranks
from ranks import SLOW_STEPS, TOY, RanksTest, environment, main

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "cluster.md")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def call(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


class CoresTest(RanksTest):
    def on_cores(self, count, *command, **variables):
        """Runs on that many of the cores that this process may use."""
        cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[:count])
        job = self.begin(["taskset", "-c", cores, *command], **variables)
        return job.wait(), job

    def train(self):
        return [ranks.PROGRAM, "train", *TOY, "--log", "log"]

    def test_mpirun_refuses_what_launch_does_not(self):
        if os.geteuid() == 0:
            code, job = self.on_cores(2, "mpirun", "-n", "2", *self.train())
            self.assertEqual(code, 1)
            self.assertIn("as root", job.err)
        code, job = self.on_cores(2, "mpirun", "--host", "localhost:1", "-n", "2", *self.train(), **AS_ROOT)
        self.assertEqual(code, 1)
        self.assertIn("not enough slots", job.err)
        with open(DOCS, encoding="utf-8") as file:
            answers = file.read()
        for answer in ("--allow-run-as-root", *AS_ROOT, "not enough slots", "--oversubscribe"):
            self.assertIn(answer, answers)
        code, job = self.on_cores(2, ranks.PROGRAM, "launch", "-n", "4", "--", *self.train())
        self.assertEqual(code, 0, job.err)
        self.assertEqual(self.lines("run")[0]["worker_threads"], [1] * 4)
        self.assertIn("warning: 4 workers of 1 thread(s) share the 2 core(s) that this process may use", job.err)

    def test_threads_fit_the_cores(self):
        code, job = self.on_cores(2, ranks.PROGRAM, "launch", "-n", "2", "--", *self.train())
        self.assertEqual(code, 0, job.err)
        self.assertEqual(self.lines("run")[0]["worker_threads"], [1, 1])
        self.assertNotIn("share", job.err)

    def test_what_mpirun_binds_to_a_core(self):
        command = ["mpirun", "--oversubscribe", "--bind-to", "core", "--cpu-set", "0", "-n", "2", *self.train()]
        job = self.begin(command, **AS_ROOT)
        self.assertEqual(job.wait(), 0, job.err)
        self.assertEqual(self.lines("run")[0]["worker_threads"], [1, 1])
        self.assertIn("share the 1 core(s)", job.err)


class Hosts:
    """Two hosts on this machine: network namespaces with a link, and names of their own."""

    def __init__(self, folder):
        self.names = [f"cv{os.getpid() % 100000}{letter}" for letter in "ab"]  # also those of the interfaces
        self.folder = folder

    def make(self):
        """Why it cannot be done; empty where all went well."""
        first, second = self.names
        steps = [f"netns add {first}", f"netns add {second}", f"-n {first} link add {first} type veth peer name {second}",
                 f"-n {first} link set {second} netns {second}"]
        for i, name in enumerate(self.names):
            steps += [f"-n {name} addr add 10.213.77.{i + 1}/24 dev {name}", f"-n {name} link set {name} up",
                      f"-n {name} link set lo up"]
        for step in steps:
            try:
                done = call("ip", *step.split())
            except FileNotFoundError:
                return "the program ip is not there"
            if done.returncode != 0:
                return f"ip {step}: {done.stderr.strip()}"
        for i, name in enumerate(self.names):
            with open(os.path.join(self.folder, name + ".hosts"), "w", encoding="utf-8") as file:
                file.write(f"127.0.0.1 localhost\n127.0.1.1 {name}\n10.213.77.{2 - i} {self.names[1 - i]}\n")
        agent = os.path.join(self.folder, "agent")  # takes the place of ssh: agent HOST COMMAND
        with open(agent, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nhost=$1\nshift\n' + " ".join(self.inside("$host")) + ' "$*"\n')
        os.chmod(agent, 0o755)
        with open(os.path.join(self.folder, "hosts"), "w", encoding="utf-8") as file:
            file.write("".join(f"{name} slots=2\n" for name in self.names))
        done = call(*self.inside(first, quoted=False), "hostname")
        return "" if done.stdout.strip() == first else f"a name of its own: {done.stderr.strip()}"

    def inside(self, host, quoted=True):
        """The start of a command line that runs a shell's text on a host."""
        set_up = f'hostname "$0" && mount --bind "{self.folder}/$0.hosts" /etc/hosts && eval "$1"'
        words = ["ip", "netns", "exec", host, "unshare", "-u", "-m", "sh", "-c"]
        return [*words, "'" + set_up + "'" if quoted else set_up, host]

    def remove(self):
        for name in self.names:
            call("ip", "netns", "del", name)


class HostsTest(RanksTest):
    def setUp(self):
        super().setUp()
        hosts = Hosts(self.folder)
        self.addCleanup(hosts.remove)
        reason = hosts.make()
        if reason:
            raise unittest.SkipTest(f"hosts as network namespaces: {reason}")
        self.hosts = hosts

    def on_first(self, text, **variables):
        return self.begin([*self.hosts.inside(self.hosts.names[0], quoted=False), text],
                          OMPI_MCA_plm_rsh_agent=self.path("agent"), **AS_ROOT, **variables)

    def launch(self, *words):
        flags = ["launch", "-n", "4", "--hosts", "hosts", *words]
        return " ".join([ranks.PROGRAM, *flags, "--", ranks.PROGRAM, "train", *TOY, "--log", "log"])

    def test_two_hosts(self):
        first, second = self.hosts.names
        job = self.on_first(self.launch())
        self.assertEqual(job.wait(), 0, job.err)
        self.assertIn(f"convoy: ranks meet over {first} (10.213.77.1)\n", job.err)
        self.assertEqual(self.lines("run")[0]["hosts"], [first, first, second, second])

        job = self.on_first(self.launch("--iface lo"))
        self.assertEqual(job.wait(), 2, job.err)
        self.assertIn("usage: --iface lo: loopback reaches no other host", job.err)
        by_hand = self.launch().replace("launch -n 4 --hosts hosts --", "").split(" ", 1)[1]
        job = self.on_first(f"mpirun --hostfile hosts -n 4 -x CONVOY_IFACE {by_hand}", CONVOY_IFACE="lo")
        self.assertEqual(job.wait(), 2, job.err)
        self.assertIn("loopback reaches no other host", job.err)

        os.remove(self.path("log"))
        job = self.on_first(self.launch() + " --epochs 100000")
        pid = self.reach(job, 50)[3]
        os.kill(pid, signal.SIGKILL)
        since = time.monotonic()
        self.assertEqual(job.wait(), 5, job.err)
        self.assert_gone(job, since, 15)
        self.assertRegex(job.err, rf"\[rank 3\] communication: dead: .*, host {second}, pid {pid}, last seen ")


# Slurm's srun --mpi=pmix, as far as ranks see it: PMIx comes from mpirun here, rank and size of the job from Slurm's
# variables. Signals of Slurm go to the ranks.
SRUN = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
exec mpirun -q --bind-to none --oversubscribe -n "$SLURM_NTASKS" sh -c '
    export SLURM_PROCID="$OMPI_COMM_WORLD_RANK" SLURM_LOCALID="$OMPI_COMM_WORLD_LOCAL_RANK" SLURM_NODEID=0
    export SLURM_STEP_TASKS_PER_NODE="$SLURM_NTASKS" SLURM_JOB_ID=7 SLURM_STEP_ID=0
    unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE
    exec "$@"' sh "$@"
"""


class SlurmTest(RanksTest):
    def setUp(self):
        super().setUp()
        self.make_images(8)
        with open(self.path("srun"), "w", encoding="utf-8") as file:
            file.write(SRUN)
        os.chmod(self.path("srun"), 0o755)

    def recipe(self, start):
        """The lines of the docs from one that begins with `start`, for our images."""
        with open(DOCS, encoding="utf-8") as file:
            text = file.read()
        found = re.search(rf"^    ({start}.*\n(?:        .*\n)*)", text, re.MULTILINE)
        return found.group(1).replace("folder:/data/flowers", "folder:images")

    def run_script(self, start, **more):
        names = ("model", "bn", "image_size", "batch", "lr")
        variables = {f"CONVOY_{name.upper()}": SLOW_STEPS[2 * i + 1] for i, name in enumerate(names)}
        path = self.folder + os.pathsep + os.environ["PATH"]
        return self.begin(["bash", "-c", self.recipe(start)], PATH=path, SLURM_NTASKS="2", CONVOY_LOG="log", **AS_ROOT,
                          **variables, **more)

    def slurm_ranks(self, job):
        found = job.processes().items()
        return [pid for pid, variables in found if "SLURM_PROCID" in variables and variables_have_program(pid)]

    def test_the_recipe_with_srun(self):
        job = self.run_script("srun --mpi=pmix", CONVOY_EPOCHS="1000")
        self.reach(job, 2)
        pids = self.slurm_ranks(job)
        self.assertEqual(len(pids), 2)
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        self.assertEqual(job.wait(), 143, job.err)
        run = self.lines("run")[0]
        self.assertEqual((run["world"], run["backend"]), (2, "mpi"))
        step = self.saved_step()
        self.assertGreaterEqual(step, 2)
        job = self.run_script("srun --mpi=pmix", CONVOY_STEPS=str(step + 2))
        self.assertEqual(job.wait(), 0, job.err)
        self.assertEqual(self.lines("run")[-1]["start_step"], step)
        self.assertEqual(self.saved_step(), step + 2)

    def test_the_recipe_with_launch(self):
        job = self.run_script("exec convoy launch")
        self.assertEqual(job.wait(), 0, job.err)
        self.assertEqual(self.lines("run")[0]["world"], 2)

    def test_srun_without_pmix_starts_nothing(self):
        for task in ("0", "1"):
            run = subprocess.run(
                [ranks.PROGRAM, "train", *TOY], env=environment(SLURM_PROCID=task, SLURM_NTASKS="2", SLURM_LOCALID=task),
                capture_output=True, text=True, timeout=20, check=False,
            )
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn("usage: SLURM_NTASKS is 2, but MPI has 1", run.stderr)


def variables_have_program(pid):
    try:
        return os.path.samefile(f"/proc/{pid}/exe", ranks.PROGRAM)
    except OSError:
        return False


if __name__ == "__main__":
    main()
