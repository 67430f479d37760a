#!/usr/bin/python3
"""messages.py PAGE SOURCE...: prints what the sources log and the manual page does not have.

A format is known if one line of the section DIAGNOSTICS has all of its fixed words, in that order. Debug messages are left out.
"""
import re
import sys

CALL = re.compile(r'\blog_(?:lock_)?(?:error|warning|info)\(\s*(?:[^";]*?,\s*)?((?:"(?:[^"\\]|\\.)*"\s*|PRI\w+\s*)+)')
CONVERSION = re.compile(r"%[-+ #0-9.*]*(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")


def formats(path):
    with open(path) as file:
        for call in CALL.finditer(file.read()):
            text = re.sub(r"PRI\w+", '"d"', call.group(1)).replace("DLOCKFS_VERSION", '"%s"')
            yield "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))


def known(page):
    with open(page) as file:
        section = file.read().partition("\n.Sh DIAGNOSTICS\n")[2].partition("\n.Sh ")[0]
    return [line.replace("\\&", "") for line in section.splitlines()]


def main():
    lines = known(sys.argv[1])
    count = 0
    for path in sys.argv[2:]:
        for text in formats(path):
            words = [word.strip() for word in CONVERSION.split(text)]
            pattern = ".*".join(re.escape(word) for word in words if word)
            if not re.search(r"[a-z]{3}", text) or not pattern.strip(":;"):
                continue
            count += 1
            if not any(re.search(pattern, line) for line in lines):
                print(f"{path}: {text}")
    if count < 50:
        print(f"only {count} formats found: are the sources read?")


main()
