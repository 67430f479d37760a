#!/usr/bin/python3
"""embed.py FILE...: writes the array of assets.h with the files, the first of which is the page."""
import os
import sys

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}

print('#include "web/assets.h"\n\nconst struct asset assets[] = {')
for number, path in enumerate(sys.argv[1:]):
    with open(path, "rb") as file:
        text = file.read()
    name = os.path.basename(path)
    kind = TYPES[os.path.splitext(name)[1]]
    print(f'\t{{"/{name if number > 0 else ""}", "{kind}; charset=utf-8", (const char *)(const unsigned char[]){{')
    print("\n".join(",".join(map(str, text[start:start + 32])) + "," for start in range(0, len(text), 32)))
    print(f"\t}}, {len(text)}}},")
print("\t{0},\n};")
