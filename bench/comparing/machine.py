"""What a comparison ran on: processor, cores, versions of both sides, commit; and whether it can run at all."""
import datetime
import os
import platform
import shutil
import subprocess

from .processes import CompareError, run

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
QUICK = 120  # seconds, for programs that only tell what they are
TELL = """
import json, sys
found = {"python": sys.version.split()[0]}
for name in sys.argv[1].split(","):
    found[name] = __import__(name).__version__
print(json.dumps(found))
"""
# Both sides choose by themselves how threads wait and where they run.
DROPPED = ("OMP_", "GOMP_", "KMP_", "MKL_", "CONVOY_")
# What holds Convoy, PyTorch (with what it compiles), its oneDNN and its MKL to an instruction set.
INSTRUCTIONS = {name: {"CONVOY_CPU_ISA": name, "ATEN_CPU_CAPABILITY": name, "ONEDNN_MAX_CPU_ISA": onednn,
                       "MKL_ENABLE_INSTRUCTIONS": name.upper()}
                for name, onednn in (("avx2", "AVX2"), ("avx512", "AVX512_CORE_AMX"))}


def environment(**more):
    env = {name: value for name, value in os.environ.items()
           if name in INSTRUCTIONS["avx2"] or not name.startswith(DROPPED)}
    if os.geteuid() == 0:
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return env | more


def find_program(name, flag):
    """Its path; `flag` is what would name another one."""
    path = shutil.which(name)
    if path is None:
        raise CompareError(f"{flag} {name}: no such program")
    return path


def versions_of(python, modules, flag):
    """Versions of the modules that this Python has, by name."""
    path = find_program(python, flag)
    try:
        return run([path, "-c", TELL, ",".join(modules)], environment(), QUICK)[0]
    except CompareError as error:
        cause = str(error).splitlines()[-1].strip()
        raise CompareError(f"{flag} {python}: expected a Python with {' and '.join(modules)}: {cause}") from error
    except IndexError:
        raise CompareError(f"{flag} {python}: no Python, it does not tell its version") from None


def first_line(command):
    """Of what it prints; empty where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    except OSError:
        return ""
    return (done.stdout.splitlines() or [""])[0]


def convoy_facts(convoy):
    lines = run([convoy, "devices", "--json"], environment(), QUICK)
    if not lines or "devices" not in lines[0]:
        raise CompareError(f"--convoy {convoy}: no Convoy, `devices --json` does not list devices")
    cpu = next((d["text"] for d in lines[0]["devices"] if d["device"] == "cpu:0"), "no cpu:0")
    return {"convoy": lines[0]["versions"]["convoy"], "kernels": cpu}


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def memory_gb():
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


def commit():
    """Of the tree that this program lies in, with a + where files differ from it."""
    told = first_line(["git", "-C", ROOT, "describe", "--always", "--exclude=*", "--dirty=+"])
    return told or "unknown"


def cores():
    return len(os.sched_getaffinity(0))


def facts(convoy):
    """Equal for all rows of one machine."""
    return {"processor": processor(), "cores": cores(), "memory_gb": memory_gb(),
            "system": f"{platform.system()} {platform.release()}", **convoy_facts(convoy)}


def today():
    return datetime.date.today().isoformat()


def free_memory_gb():
    with open("/proc/meminfo", encoding="utf-8") as file:
        free = dict(text.split(":", 1) for text in file)
    return int(free["MemAvailable"].split()[0]) / 2**20
