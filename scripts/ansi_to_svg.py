#!/usr/bin/env python3
"""Draw terminal output as an SVG.

    ansi_to_svg.py COLUMNS <TEXT >PICTURE

Understands the escape sequences that gpuscope and its live screen write: reset, bold, dim, inverse, some colours. Lines wrap after
COLUMNS characters.
"""
import html
import re
import sys

COLUMNS = int(sys.argv[1])
CELL, LINE, PAD = 8.4, 19, 16
COLOURS = {"fg": "#d8dee9", "dim": "#7b8494", "red": "#ff6b6b", "yellow": "#e5c07b", "cyan": "#56b6c2", "bg": "#14171c"}
HUES = {"red", "yellow", "cyan"}
BY_CODE = {"31": "red", "33": "yellow", "36": "cyan", "38;5;1": "red", "38;5;3": "yellow", "38;5;6": "cyan"}
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")


def styled(style, sequence):
    """The style after an escape sequence."""
    for code in re.findall(r"[34]8;5;[0-9]+|[0-9]+", sequence) or ["0"]:
        if code == "0":
            style = set()
        elif code in BY_CODE or code == "39":
            style = style - HUES | ({BY_CODE[code]} if code in BY_CODE else set())
        elif code != "49":
            style = style | {{"1": "bold", "2": "dim", "7": "inverse"}[code]}
    return style


def rows(line):
    """The rows that a line takes, each a list of (text, style) pieces."""
    style, made, room = set(), [[]], COLUMNS
    for index, part in enumerate(ESCAPE.split(line)):
        if index % 2:
            style = styled(style, part)
            continue
        while len(part) > room:
            made[-1].append((part[:room], set(style)))
            part, room = part[room:], COLUMNS
            made.append([])
        made[-1].append((part, set(style)))
        room -= len(part)
    return made


def draw(lines):
    screen = [row for line in lines for row in rows(line)]
    width, height = COLUMNS * CELL + 2 * PAD, len(screen) * LINE + 2 * PAD
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
           f'height="{height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14">')
    yield f'<rect width="100%" height="100%" rx="8" fill="{COLOURS["bg"]}"/>'
    for row, pieces in enumerate(screen):
        column = 0
        for text, style in pieces:
            colour = COLOURS[next((name for name in ("red", "yellow", "cyan", "dim") if name in style), "fg")]
            weight = ' font-weight="bold"' if "bold" in style else ""
            place = f'x="{PAD + column * CELL:.1f}" y="{PAD + row * LINE + 14}" textLength="{len(text) * CELL:.1f}"'
            if "inverse" in style:
                yield (f'<rect x="{PAD + column * CELL:.1f}" y="{PAD + row * LINE}" width="{len(text) * CELL:.1f}" height="{LINE}" '
                       f'fill="{colour}"/>')
                colour = COLOURS["bg"]
            if text.strip():
                yield f'<text {place} xml:space="preserve" fill="{colour}"{weight}>{html.escape(text)}</text>'
            column += len(text)
    yield "</svg>"


print("\n".join(draw(sys.stdin.read().splitlines())))
