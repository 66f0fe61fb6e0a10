"""Finds what GCC 12 miscompiles: a braced temporary or a conditional object inside a co_await expression (CONTRIBUTING.md).

usage: coroutine_temporaries.py ROOT
"""
import pathlib
import re
import sys


def statement(text, at):
    """The co_await operand: up to the `;`, or the closing bracket, that ends it."""
    depth = 0
    for i in range(at, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
            if depth < 0:
                return text[at:i]
        elif text[i] == ";" and depth == 0:
            return text[at:i]
    return text[at:]


def without_lambdas(text):
    """Lambda bodies are functions of their own."""
    out, i = "", 0
    while i < len(text):
        head = re.compile(r"\[[^\[\]]*\]\s*(\([^()]*\))?[^{;,]*\{").match(text, i)
        if not head:
            out += text[i]
            i += 1
            continue
        depth, i = 1, head.end()
        while i < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[i], 0)
            i += 1
        out += "lambda"
    return out


def faults(text):
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', re.sub(r"//[^\n]*", "", text))
    for match in re.finditer(r"(?<!operator )\bco_await\b", text):
        operand = without_lambdas(statement(text, match.end()))
        if re.search(r"[\w>(,]\s*\{", operand) or re.search(r"\?[^;]*[^:]:[^:]", operand):
            yield text.count("\n", 0, match.start()) + 1, " ".join(operand.split())[:100]


def main():
    root = pathlib.Path(sys.argv[1])
    found = 0
    for folder in ("base", "core", "plugins", "plugin-api"):
        for path in sorted(root.joinpath(folder).rglob("*.[ch]pp")):
            if path.name.endswith("_test.cpp"):
                continue
            for line, operand in faults(path.read_text()):
                found += 1
                print(f"{path}:{line}: name this value before the co_await: {operand}")
    return 1 if found else 0


if __name__ == "__main__":
    assert list(faults("x = co_await f(a{});")) and list(faults("co_await f(a ? b : c);")) and list(faults("co_await f(a, {b});"))
    assert not list(faults("co_await f(std::move(a)); b{};")) and not list(faults("co_await on([&](int x) { return y{x}; });"))
    sys.exit(main())
