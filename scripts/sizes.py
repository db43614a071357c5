#!/usr/bin/env python3
"""Prints how long files and functions are, layer by layer, and the longest ones. An aim, not a wall: never fails.

Usage: sizes.py [ROOT]
Aims: a file of 100 to 400 lines, a function of 10 lines (median) and 30 (p90), comments 10 to 20 % of lines.
A function is found by its braces: good enough to watch a trend, not a parser.
"""
import os
import re
import sys

from includes import sources

LONGEST = 8  # how many of the longest functions and files are named
KEYWORDS = re.compile(r"^(if|for|while|switch|catch|else|do|return|namespace|enum|struct|class|union|extern)\b")
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])\'(?:\\.|[^\'\\\n])+\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
ACCESS = re.compile(r"^\s*(?:(?:public|private|protected)\s*:\s*)?")
TEMPLATE = re.compile(r"^template\s*<[^;{}]*?>\s*(?=[\w\[])")
OPERATOR = re.compile(r"operator\s*[^\s\w(]+")
NAME = re.compile(r"((?:[\w~]+::)*operator\s*[^\s(]+|[\w:~]+)\s*\(")


def blank(match):
    """Spaces and the newlines of what is taken out, so that places stay where they are."""
    return re.sub(r"[^\n]", " ", match.group(0))


def without_noise(text):
    """The text with comments, strings and preprocessor lines blanked."""
    return DIRECTIVE.sub(blank, NOISE.sub(blank, text))


def function_name(head):
    """The name of the function whose head (text before its brace) this is, None if it is something else."""
    head = TEMPLATE.sub("", ACCESS.sub("", head))
    if "(" not in head or KEYWORDS.match(head) or re.match(r"^[^(]*=", OPERATOR.sub("", head)):
        return None
    names = NAME.findall(head)
    return names[0] if names else None


def is_initialiser(head):
    """Whether the brace after `head` opens a value, as in `A(int n = {})` and `A() : n_{1} {`, not a body."""
    if head.count("(") != head.count(")"):
        return True
    return re.search(r"\)\s*(?:noexcept\s*)?:(?!:).*\w\s*$", head, re.S) is not None


def functions(text):
    """(name, first line, number of lines) of each function; a lambda counts with the function around it."""
    clean = without_noise(text)
    found, stack, start = [], [], 0
    for place in re.finditer(r"[{};]", clean):
        sign, at = place.group(0), place.start()
        inside = any(name for name, _ in stack)
        if sign == "{":
            head = clean[start:at]
            value = not inside and is_initialiser(head)
            name = None if inside or value else function_name(head)
            stack.append((name, None if value else start + ACCESS.match(head).end()))
            if value:
                continue
        elif sign == "}" and stack:
            name, head_at = stack.pop()
            if head_at is None:
                continue
            if name:
                first = clean.count("\n", 0, head_at) + 1
                found.append((name, first, clean.count("\n", 0, at) + 2 - first))
        start = at + 1
    return found


def comment_lines(text):
    return len(re.findall(r"^\s*//", text, re.M))


def quantile(values, share):
    """The value that `share` of the sorted values do not exceed; 0 of none."""
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0


def spread(values):
    return f"{quantile(values, 0.5)}, {quantile(values, 0.9)}, {max(values, default=0)}"


def read_tree(root):
    """{layer: [(path, text)]} in the order of the tree."""
    layers = {}
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            layers.setdefault(path.split("/")[0], []).append((path, file.read()))
    return layers


def row(layer, files):
    lengths = [text.count("\n") for _, text in files]
    sizes = [length for _, text in files for _, _, length in functions(text)]
    share = 100 * sum(comment_lines(text) for _, text in files) // max(1, sum(lengths))
    return (f"{layer:9} {len(files):5} {sum(lengths):7}   {spread(lengths):16} {len(sizes):6}   {spread(sizes):14}"
            f" {sum(size > 50 for size in sizes):5}   {share:3} %")


def main(arguments):
    here = os.path.dirname(os.path.abspath(__file__))
    layers = read_tree(os.path.normpath(arguments[0] if arguments else os.path.join(here, "..")))
    everything = [entry for files in layers.values() for entry in files]
    print("layer     files   lines   median, p90, max functions   med., p90, max  > 50   comments")
    for layer, files in layers.items():
        print(row(layer, files))
    print(row("all", everything))
    longest = [(length, f"{path}:{line} {name}") for path, text in everything
               for name, line, length in functions(text)]
    print("longest functions: " + "; ".join(f"{n} {where}" for n, where in sorted(longest, reverse=True)[:LONGEST]))
    files = sorted(((text.count("\n"), path) for path, text in everything), reverse=True)
    print("longest files: " + "; ".join(f"{n} {path}" for n, path in files[:LONGEST]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
