"""Lets the sides of a comparison take turns, and makes medians, ratios and spreads of their numbers.

A ratio is Convoy's median over that of the best other side; its spread is the least and the greatest ratio of two
numbers of one turn. Above 1 Convoy is ahead, where less is better (memory) below 1.
"""
import contextlib
import statistics
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """What one line of the table compares: `ours` against the best of `others`, by the sides' names."""

    name: str
    title: str
    unit: str
    ours: str
    others: tuple
    less_is_better: bool = False
    facts: tuple = ()  # keys of our side that are told besides


@dataclass(frozen=True)
class Comparison:
    """Sides that take turns, and the rows that come of it."""

    name: str
    settings: str
    sides: tuple
    rows: tuple
    cores: int = 1
    modules: dict = field(default_factory=dict)  # versions told, by name


def take_turns(comparison, runs, say):
    """{side: {key: [a number each turn]}}; the sides in the same order in each turn."""
    found = {side.name: {} for side in comparison.sides}
    with contextlib.ExitStack() as stack:
        turns = []
        for side in comparison.sides:
            if side.stays:
                say(f"{comparison.name}: {side.name} gets ready")
            turns.append((side.name, stack.enter_context(side.ready())))
        for k in range(1, runs + 1):
            for name, turn in turns:
                numbers = turn()
                say(f"{comparison.name}: turn {k} of {runs}: {name}: " + ", ".join(
                    f"{key} {value:.4g}" for key, value in numbers.items()))
                for key, value in numbers.items():
                    found[name].setdefault(key, []).append(value)
    return found


def best_of(row, values):
    pick = min if row.less_is_better else max
    return pick(row.others, key=lambda side: statistics.median(values[side]))


def compared(row, found):
    """A row's numbers as a line of JSON."""
    values = {side: found[side][row.name] for side in (row.ours, *row.others)}
    against = best_of(row, values)
    medians = {side: statistics.median(numbers) for side, numbers in values.items()}
    pairs = [ours / other for ours, other in zip(values[row.ours], values[against])]
    facts = {key: statistics.median(found[row.ours][key]) for key in row.facts if key in found[row.ours]}
    return {"row": row.name, "title": row.title, "unit": row.unit, "ours": row.ours, "against": against,
            "ratio": medians[row.ours] / medians[against], "ratio_min": min(pairs), "ratio_max": max(pairs),
            "less_is_better": row.less_is_better, "medians": medians, "values": values, "facts": facts}
