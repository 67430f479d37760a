#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pictures.py FOLDER: draws the pictures of the documentation, FOLDER/life-of-a-lock.svg and FOLDER/lease-time-line.svg.

Only Python's standard library, and no measuring of fonts: the same source gives the same bytes everywhere.
"""
import html
import os
import sys

HEAD = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"
     font-family="DejaVu Sans, Verdana, sans-serif" font-size="13" role="img" aria-label="{label}">
<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0 0 L10 5 L0 10 z" fill="#333"/></marker></defs>
<rect width="{width}" height="{height}" fill="#fff"/>
"""
CALM, GOOD, DOUBT, BAD = "#eef2f7", "#dff0d8", "#fcf3cf", "#f8d7da"


class Picture:
    def __init__(self, width, height, label):
        self.parts = [HEAD.format(width=width, height=height, label=html.escape(label))]

    def add(self, text):
        self.parts.append(text + "\n")

    def text(self, x, y, words, anchor="middle", style=""):
        self.add(f'<text x="{x}" y="{y}" text-anchor="{anchor}"{style}>{html.escape(words)}</text>')

    def box(self, x, y, width, lines, fill):
        """A state: the first line is its name. x, y: the middle of its upper edge."""
        height = 14 + 18 * len(lines)
        self.add(f'<rect x="{x - width // 2}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="#333"/>')
        self.text(x, y + 21, lines[0], style=' font-weight="bold"')
        for number, line in enumerate(lines[1:], 1):
            self.text(x, y + 21 + 18 * number, line)

    def arrow(self, points, dashes=""):
        path = " L".join(f"{x} {y}" for x, y in points)
        self.add(f'<path d="M{path}" fill="none" stroke="#333" stroke-width="1.4"{dashes} marker-end="url(#tip)"/>')

    def line(self, x1, y1, x2, y2, style='stroke="#333"'):
        self.add(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {style}/>')

    def words(self, x, y, lines, anchor="start"):
        for number, line in enumerate(lines):
            self.text(x, y + 16 * number, line, anchor, ' font-size="12" fill="#333"')

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(self.parts + ["</svg>\n"])


def life_of_a_lock():
    picture = Picture(940, 620, "The life of a lock")
    picture.box(470, 16, 250, ["open file", "no lock; nothing on the servers"], CALM)
    picture.box(470, 136, 250, ["placing", "the claim is created, and", "the queue listed: one round trip"], CALM)
    picture.box(160, 145, 210, ["uncertain", "is there a claim? look", "for it by its id"], DOUBT)
    picture.box(160, 306, 250, ["waiting", "the nearest claim of another", "host in the way is watched"], DOUBT)
    picture.box(560, 306, 210, ["held", "the call returns", "a heartbeat each T/8"], GOOD)
    picture.box(560, 446, 210, ["jeopardy", "still held; nothing new", "is granted"], DOUBT)
    picture.box(560, 556, 210, ["fenced", "EIO, POLLERR, on_lost"], BAD)
    picture.box(820, 310, 190, ["released", "the claim is deleted"], CALM)

    picture.arrow([(470, 66), (470, 136)])
    picture.words(482, 96, ["flock, fcntl, lockf,", "open(O_CREAT|O_EXCL)"])
    picture.arrow([(345, 160), (265, 160)])
    picture.words(305, 150, ["no answer:"], "middle")
    picture.words(305, 176, ["cut off"], "middle")
    picture.arrow([(265, 192), (345, 192)])
    picture.words(305, 210, ["connected"], "middle")
    picture.arrow([(420, 204), (420, 250), (225, 250), (225, 306)])
    picture.words(235, 244, ["a conflicting claim", ], "start")
    picture.words(235, 268, ["stands before it"])
    picture.arrow([(540, 204), (540, 306)])
    picture.words(552, 250, ["nothing conflicting", "stands before it"])
    picture.arrow([(285, 340), (455, 340)])
    picture.words(370, 332, ["that claim has gone"], "middle")
    picture.arrow([(160, 374), (160, 446)])
    picture.words(172, 404, ["a signal, kill -9;", "a call that does not wait;", "a deadlock"])
    picture.box(160, 446, 250, ["withdrawn", "the claim is deleted", "EINTR, EWOULDBLOCK, EDEADLK"], CALM)
    picture.arrow([(665, 340), (725, 340)])
    picture.words(805, 384, ["LOCK_UN, F_UNLCK, close,", "exit, kill -9 of the holder"], "middle")
    picture.arrow([(520, 374), (520, 446)])
    picture.words(508, 404, ["the connection", "is lost"], "end")
    picture.arrow([(600, 446), (600, 374)])
    picture.words(612, 404, ["connected again", "in time"])
    picture.arrow([(560, 514), (560, 556)])
    picture.words(572, 540, ["the lease ends"])
    picture.arrow([(455, 580), (20, 580), (20, 340), (35, 340)], ' stroke-dasharray="5 4"')
    picture.words(30, 598, ["waiting calls queue again, in a new session"])
    picture.arrow([(665, 580), (905, 580), (905, 360)], ' stroke-dasharray="5 4"')
    picture.words(675, 598, ["close: the file can be opened again"])
    picture.arrow([(820, 310), (820, 41), (595, 41)])
    picture.words(810, 33, ["the next in the queue is granted"], "end")
    return picture


def lease_time_line():
    left, unit, top = 130, 92, 56 # unit: an eighth of the session timeout T
    picture = Picture(960, 460, "The time line of the lease")

    def at(eighths):
        return round(left + eighths * unit)

    def cross(x, y, size):
        for slope in (-1, 1):
            picture.line(x - size, y - slope * size, x + size, y + slope * size, 'stroke="#b71c1c" stroke-width="2"')

    echo, proof, gone, suspended, lease, guard, end = 0.25 * 8, 0.3125 * 8, 0.365 * 8, 0.615 * 8, 0.975 * 8, 0.9875 * 8, 8
    for number in range(9):
        picture.line(at(number), top, at(number), 382, 'stroke="#ddd"')
        picture.text(at(number), top - 8, "0" if number == 0 else "T" if number == 8 else f"{number}/8 T")
    picture.text(left - 12, top - 8, "time", "end", ' font-weight="bold"')

    picture.text(left - 12, 84, "heartbeats", "end", ' font-weight="bold"')
    picture.text(left - 12, 108, "syncs", "end", ' font-weight="bold"')
    for number in range(40):
        if number % 8 == 0 and number / 8 < gone:
            picture.add(f'<circle cx="{at(number / 8)}" cy="80" r="6" fill="#2e7d32"/>')
        elif number % 8 == 0:
            cross(at(number / 8), 80, 6)
        elif number / 8 < gone:
            picture.add(f'<circle cx="{at(number / 8)}" cy="104" r="3" fill="#2e7d32"/>')
        else:
            cross(at(number / 8), 104, 3)
    picture.line(at(gone), top, at(gone), 152, 'stroke="#b71c1c" stroke-width="1.5"')
    picture.words(at(5) + 10, 84, ["a write each T/8: the quorum acknowledges it"])
    picture.words(at(5) + 10, 108, ["a sync each T/64: the leader answers it"])
    for x, name in ((0, "sign"), (echo, "echo"), (proof, "proof")):
        picture.line(at(x), 118, at(x), 132)
        picture.text(at(x), 145, name, style=' font-weight="bold"')
    picture.words(at(1), 145, ["T/4 or more"], "middle")
    picture.words(at(gone) + 6, 145, ["the link goes: nothing is answered any more"])

    picture.text(left - 12, 190, "daemon", "end", ' font-weight="bold"')
    for begin, stop, fill, name in ((0, suspended, GOOD, "safe: locks are granted and kept"),
                                    (suspended, lease, DOUBT, "jeopardy: kept, none granted"), (lease, 8.9, BAD, "fenced")):
        picture.add(f'<rect x="{at(begin)}" y="172" width="{at(stop) - at(begin)}" height="28" fill="{fill}" stroke="#333"/>')
        picture.text((at(begin) + at(stop)) // 2, 191, name)
    picture.words(at(gone) + 6, 218, ["from T/12 of silence on, new connections are tried all the time:",
                                      "one of them, and one write, renew the whole lease"])

    picture.text(left - 12, 274, "servers", "end", ' font-weight="bold"')
    picture.add(f'<rect x="{at(0)}" y="256" width="{at(end) - at(0)}" height="28" fill="{CALM}" stroke="#333"/>')
    picture.text(at(4), 275, "proved: the leader counts T from the sign, or from later, so the session lives")
    picture.add(f'<rect x="{at(end)}" y="256" width="{at(8.9) - at(end)}" height="28" fill="{BAD}" stroke="#333"/>')
    picture.text(at(8.46), 275, "over")

    picture.line(at(gone), 312, at(lease), 312, 'stroke="#333" marker-end="url(#tip)"')
    picture.line(at(gone), 306, at(gone), 318)
    picture.words((at(gone) + at(lease)) // 2, 306, ["0.61 T"], "middle")
    for x, y, first, lines in (
            (lease, 360, 200, ["0.975 T after the latest sign that is proved: the lease ends.",
                               "The daemon fences its holders and sends on_lost"]),
            (guard, 404, 200, ["T/80 later: the guard tells them if the daemon has not"]),
            (end, 432, 284, ["T: the earliest moment at which the servers may end the session, "
                             "and another host may be granted the lock"])):
        picture.line(at(x), first, at(x), y - 4, 'stroke="#333" stroke-dasharray="3 3"')
        picture.words(at(x) - 8, y, lines, "end")
        picture.add(f'<circle cx="{at(x)}" cy="{y - 4}" r="3" fill="#333"/>')
    return picture


def main():
    folder = sys.argv[1]
    life_of_a_lock().save(os.path.join(folder, "life-of-a-lock.svg"))
    lease_time_line().save(os.path.join(folder, "lease-time-line.svg"))


main()
