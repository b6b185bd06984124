#!/usr/bin/env python3
"""Inputs for the fuzz target `leaving`: of each function of a library an address, and the library's unwind information.

usage: fuzz-seeds.py LIBRARY FOLDER
"""
import struct
import sys

library, folder = sys.argv[1:]
data = open(library, "rb").read()
of_sections, size, count, names = struct.unpack_from("<Q10xHHH", data, 40)
sections = [struct.unpack_from("<IIQQQQ", data, of_sections + i * size) for i in range(count)]
name_of = lambda section: data[sections[names][4] + section[0] :].split(b"\0", 1)[0]
parts = {name_of(section): section for section in sections}
header, frames = parts[b".eh_frame_hdr"], parts[b".eh_frame"]
assert header[3] < frames[3], "the table lies before its entries"
information = data[header[4] : frames[4] + frames[5]]
functions = struct.unpack_from("<I", data, header[4] + 8)[0]
for number in range(functions):
    begin = struct.unpack_from("<i", data, header[4] + 12 + 8 * number)[0]
    for apart in (1, 5, 24):
        with open(f"{folder}/{number}-{apart}", "wb") as seed:
            seed.write(struct.pack("<iB", begin + apart, 0) + information)
