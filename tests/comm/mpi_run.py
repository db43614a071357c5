#!/usr/bin/env python3
"""Runs a test program on N ranks and shows what it printed.

Usage: mpi_run.py N PROGRAM [arguments]
"""
import sys

from mpirun import mpirun


def main(arguments):
    run = mpirun("-n", arguments[0], *arguments[1:])
    sys.stdout.write(run.stdout)
    sys.stderr.write(run.stderr)
    return 0 if run.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
