"""Lines of JSON as the table of docs/benchmarks.md, and as the few lines that a terminal shows.

Rows of one machine stand in one section; of two lines with one name the later one counts.
"""
HEAD = """# Benchmarks
Convoy beside other programs that do the same work on the same cores, written by `bench/compare`
([how](#how-it-is-measured)). Figures of another machine differ; ratios less so.
"""
HOW = """## How it is measured
In each turn every program of a row measures once, one after the other, always in the same order; what waits for its
turn sleeps. PyTorch's scripts stay between turns, so that a turn holds neither imports nor compilation; Convoy is
started for each turn. The first steps of all are not counted: two of Convoy's. Values are medians over the turns. A ratio is
Convoy's median over that of the best other program of the row; in brackets stand the least and the greatest ratio
within one turn. A program with a virtual environment of PyTorch repeats it:

    bench/compare --python VENV/bin/python --markdown > docs/benchmarks.md
"""
KEYS = ("title", "unit", "ours", "against", "ratio", "ratio_min", "ratio_max", "less_is_better", "medians", "facts",
        "turns", "settings", "date", "commit", "commands", "machine", "versions")  # of a line
COLUMNS = ("what", "Convoy", "others", "ratio (spread)", "turns", "date, commit")
NAMES = {"processor": "processor", "kernels": "Convoy computes with", "cores": "cores", "memory_gb": "memory, GB",
         "system": "system", "convoy": "Convoy", "torch": "PyTorch", "torchvision": "torchvision", "mpi": "MPI"}


def number(value):
    """Three digits that count."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def shown(row, side):
    return f"{number(row['medians'][side])} {row['unit']}"


def facts_of(row):
    names = {"share_of_peak": "% of the FMA peak", "share_of_ceiling": "% of its ceiling"}
    return "".join(f", {100 * value:.0f} {names[key]}" for key, value in row["facts"].items())


def ratio_of(row):
    text = f"{row['ratio']:.2f} ({row['ratio_min']:.2f} to {row['ratio_max']:.2f})"
    return text + (", less is better" if row["less_is_better"] else "")


def others_of(row):
    """The best one first."""
    names = sorted(row["medians"], key=lambda side: side != row["against"])
    return ", ".join(f"{name} {number(row['medians'][name])}" for name in names if name != row["ours"])


def cells(row):
    return (row["title"], shown(row, row["ours"]) + facts_of(row), others_of(row), ratio_of(row), str(row["turns"]),
            f"{row['date']}, {row['commit']}")


def line(texts):
    return "| " + " | ".join(texts) + " |"


def newest(rows):
    """The last line of each name on each machine, in the order in which names first came."""
    return list({(str(row["machine"]), row["row"]): row for row in rows}.values())


def settings_of(rows):
    """What the rows measured, each text once."""
    names = {}
    for row in rows:
        names.setdefault(row["settings"], []).append(row["title"])
    return [f"- {'; '.join(titles)}: {settings}." for settings, titles in names.items()]


def commands_of(rows):
    found = dict.fromkeys(command for row in rows for command in row["commands"])
    return ["    " + command for command in found]


def versions_of(rows):
    """Each program's, several where rows were measured with several."""
    found = {}
    for row in rows:
        for name, version in row["versions"].items():
            found.setdefault(name, {})[version] = None
    return {name: ", ".join(versions) for name, versions in found.items()}


def section(rows):
    machine = rows[0]["machine"]
    about = [line((NAMES.get(key, key), str(value))) for key, value in (machine | versions_of(rows)).items()]
    return "\n".join([
        f"## {machine['processor']}", line(("of", "is")), line(("---",) * 2), *about, "",
        line(COLUMNS), line(("---",) * len(COLUMNS)), *(line(cells(row)) for row in rows), "",
        *settings_of(rows), "", "What ran, Python's scripts with `--turns` besides:", "", *commands_of(rows), ""])


def markdown(rows):
    """The whole document."""
    by_machine = {}
    for row in newest(rows):
        by_machine.setdefault(str(row["machine"]), []).append(row)
    return "\n".join([HEAD, *(section(found) for found in by_machine.values()), HOW]).rstrip() + "\n"


def terminal(rows):
    texts = [(row["title"], shown(row, row["ours"]) + facts_of(row), others_of(row), ratio_of(row)) for row in rows]
    widths = [max(len(text[k]) for text in texts) for k in range(4)] if texts else []
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(text, widths)).rstrip() for text in texts)
