#!/usr/bin/env python3
"""Write the tables of NVIDIA's kernel driver.

    generate_nvidia.py TABLES_DIR OUT_DIR

TABLES_DIR (tables/nvidia): CSV tables of the driver's public headers
(nv_escape.csv, uvm_ioctls.csv, nv_structs.csv, rm_classes.csv,
rm_controls.csv, nv_status.csv, xid.csv, hooks.csv).
OUT_DIR receives escapes.txt, uvm.txt, classes.txt, controls.txt, status.txt
and xid.txt: one entry a line, the columns named in the first line; and
hooks/GROUP.toml: functions of the driver that go together, as hook files.

The output depends on the input only. A field that lies elsewhere than its
struct's size allows, a class with two canonical names, a struct that is not
there: each ends the run with status 1 and writes nothing.
"""

import csv
import os
import re
import sys

import hook_groups
import nvidia_roles as roles

BRANCHES = ["535", "550", "570", "580", "590", "595"]
# Requests whose argument is an array: its length is in the request.
REPEATED = {"CARD_INFO": "72*", "ATTACH_GPUS_TO_FD": "4*"}
# As much of a text as is copied: with the words before it, 64 bytes.
TEXT = 56
# RM_ALLOC takes this struct too, told apart by size.
SECOND_STRUCTS = {"RM_ALLOC": "NVOS21_PARAMETERS"}


def refuse(message):
    sys.exit(f"generate_nvidia.py: {message}")


def rows(directory, name):
    with open(os.path.join(directory, name), newline="") as file:
        return list(csv.DictReader(file))


def number(column):
    return int(column) if column else None


def structs(directory):
    """struct -> field -> (width or None, offset by branch)"""
    found = {}
    for row in rows(directory, "nv_structs.csv"):
        offsets = {b: int(row[f"off_{b}"]) for b in BRANCHES if row[f"off_{b}"]}
        width = int(row["field_size_580"]) if row["field_size_580"] else None
        found.setdefault(row["struct"], {})[row["field"]] = (width, offsets)
    return found


def kind(field, width):
    """The letter for what a field holds; None when it is not shown."""
    if field in roles.HIDDEN or width is None:
        return None
    if field == "hClass":
        return "c"
    if field in roles.DESCRIPTORS:
        return "i"
    if width == 16 and ("uuid" in field.lower() or field in roles.PROCESSORS):
        return "g"
    if field == "versionString":
        return "t"
    if width not in (1, 2, 4, 8):
        return None
    if width == 4 and re.match(r"h[A-Z]", field):
        return "h"
    if width == 8 and (field in roles.ADDRESSES or re.match(r"p[A-Z]", field)):
        return "a"
    if field in roles.SIZES:
        return "z"
    return "x" if field in roles.FLAGS else "n"


def field_column(owner, field, width, offset):
    letter = "m" if (owner, field) == ("RM_CONTROL", "cmd") else kind(field, width)
    if owner in ("RM_ALLOC_MEMORY", "RM_ALLOC_CONTEXT_DMA2") and field == "limit":
        letter = "l"
    if letter is None:
        return None
    written = roles.WRITTEN.get(f"{field}@{owner}", roles.WRITTEN.get(field, ""))
    if owner == "RM_UNMAP_MEMORY":
        written = ""
    if letter == "t":
        width = min(width, TEXT)
    return f"{field}:{offset}:{letter}{width}{written}"


def layout(owner, struct, branch, size):
    """The columns of the fields that are shown, in order of offset."""
    columns = []
    for name, (width, offsets) in struct.items():
        short = name.removeprefix("params.")
        if branch not in offsets or "." in short or short.lower() in ("(sizeof)", "status", "rmstatus"):
            continue
        column = field_column(owner, short, width, offsets[branch])
        if column is None:
            continue
        if offsets[branch] + width > size:
            refuse(f"{owner}.{name} in {branch} lies behind the end of its struct")
        columns.append((offsets[branch], column))
    return [column for _, column in sorted(columns)]


def merged(entries):
    """Neighbouring branches with equal columns, as `first-last columns`."""
    lines = []
    for branch, columns in entries:
        at = BRANCHES.index(branch)
        if lines and lines[-1][2] == columns and lines[-1][1] == at - 1:
            lines[-1][1] = at
        else:
            lines.append([at, at, columns])
    return [f"{BRANCHES[first]}-{BRANCHES[last]} {columns}" for first, last, columns in lines]


def layouts(owner, struct, size_of, status_of):
    entries = []
    for branch in BRANCHES:
        size = size_of(branch)
        if size is None:
            continue
        fields = layout(owner, struct, branch, size)
        entries.append((branch, " ".join([REPEATED.get(owner, str(size)), status_of(branch) or "-", *fields])))
    return merged(entries)


def escape_lines(directory, known):
    lines = ["# nr name role first-last size status field:offset:kind"]
    for row in rows(directory, "nv_escape.csv"):
        name = row["name"].removeprefix("NV_ESC_")
        role = roles.ESCAPE_ROLES.get(name, "-")
        head = f"{int(row['nr']):x} {name} {role}"
        struct = known.get(row["struct"], {})
        found = layouts(name, struct, lambda b: number(row[f"size_{b}"]), lambda b: row[f"status_off_{b}"])
        if name in SECOND_STRUCTS:
            second = known[SECOND_STRUCTS[name]]
            found += layouts(name, second, lambda b: second["(sizeof)"][1].get(b),
                             lambda b: str(second["status"][1][b]))
        if not found:
            found = [f"535-595 {REPEATED.get(name, '-')} -"]
        lines += [f"{head} {columns}" for columns in found]
    return lines


def uvm_lines(directory, known):
    lines = ["# nr name role first-last size status field:offset:kind"]
    for row in rows(directory, "uvm_ioctls.csv"):
        name = row["name"]
        role = "dead" if row["served_by"].startswith("unrouted") else roles.UVM_ROLES.get(name, "-")
        head = f"{int(row['nr']):x} {name} {role}"
        struct = known.get(f"{name}_PARAMS", {})
        if not struct and role != "dead" and row["fields_580"]:
            refuse(f"{name}: no struct {name}_PARAMS in nv_structs.csv")
        found = [] if role == "dead" else layouts(
            name, struct, lambda b: number(row[f"size_{b}"]), lambda b: row[f"rmStatus_off_{b}"])
        lines += [f"{head} {columns}" for columns in found or ["535-595 - -"]]
    return lines


def behind(struct_name, known):
    """The field behind pAllocParms, which must lie at one place in all branches."""
    field, letter = roles.BEHIND.get(struct_name, (None, None))
    if field is None:
        return ""
    width, offsets = known[struct_name][field]
    if len(set(offsets.values())) != 1:
        refuse(f"{struct_name}.{field} moves between branches")
    return f" {field}:{offsets['580']}:{letter}{width}"


def class_lines(directory, known):
    lines, seen = ["# class name kind field-behind-pAllocParms:offset:kind"], set()
    for row in rows(directory, "rm_classes.csv"):
        if row["canonical"] != "y":
            continue
        class_id = int(row["class_hex"], 16)
        if class_id in seen:
            refuse(f"class {class_id:#x} has two canonical names")
        seen.add(class_id)
        is_a = roles.CLASS_KINDS.get(row["name"], roles.CATEGORY_KINDS.get(row["category"], "other"))
        lines.append(f"{class_id:x} {row['name']} {is_a}{behind(row['alloc_param_struct'], known)}")
    return lines


def control_lines(directory):
    lines = ["# cmd name first-last (none: all branches)"]
    found = rows(directory, "rm_controls.csv")
    for row in sorted(found, key=lambda row: (int(row["cmd_hex"], 16), row["first_branch"])):
        if not row["name"] or row["name"].startswith("UNKNOWN_"):
            continue
        cmd, first, last = int(row["cmd_hex"], 16), row["first_branch"], row["last_branch"]
        # numbers without branches were seen by others in drivers newer than these
        span = "" if (first, last) == ("535", "595") else f" {first}-{last}" if first else " 595-595"
        lines.append(f"{cmd:x} {row['name']}{span}")
    return lines


def status_lines(directory):
    """Codes that carry two names say in which branches each."""
    lines, named = ["# code name first-last (none: all branches)"], {}
    for row in rows(directory, "nv_status.csv"):
        named.setdefault(int(row["code"]), []).append(row)
    for code, found in sorted(named.items()):
        for row in sorted(found, key=lambda row: row["last_seen"]):
            first, last = row["first_seen"].split(".")[0], row["last_seen"].split(".")[0]
            lines.append(f"{code:x} {row['name']}" + (f" {first}-{last}" if len(found) > 1 else ""))
    return lines


def xid_lines(directory):
    lines = ["# xid|name|meaning|origin|action|then|names in other versions"]
    columns = ["xid", "name", "short_description", "usual_origin", "nvidia_immediate_action", "nvidia_follow_up",
               "other_names_by_version"]
    for row in rows(directory, "xid.csv"):
        if any("|" in row[column] for column in columns):
            refuse(f"xid {row['xid']}: a | in a column")
        lines.append("|".join(row[column] for column in columns))
    return lines


# What is in a register for a C type; everything else that is no pointer is refused.
KINDS = {"int": "i32", "NvS32": "i32", "unsigned int": "u32", "NvU32": "u32", "NvHandle": "u32", "uint32_t": "u32",
         "unsigned long": "u64", "NvU64": "u64", "uint64_t": "u64", "NvLength": "u64", "NvP64": "ptr", "NvU16": "u16",
         "NvBool": "bool", "nv_pm_action_t": "u32", "RM_ENGINE_TYPE": "u32", "ENGDESCRIPTOR": "u64"}


def ordered_args(signature):
    """The arguments of a C prototype as a hook file has them."""
    inner = signature[signature.index("(") + 1:signature.rindex(")")]
    args = []
    for part in inner.split(","):
        match = re.fullmatch(r"\s*(?:const )?(.*?)\s*(\**)\s*(\w+)\s*", part)
        kind = "ptr" if match and match[2] else KINDS.get(match[1].strip()) if match else None
        if kind is None:
            refuse(f"no kind for \"{part.strip()}\" of {signature}")
        args.append(f"{match[3]}: {kind}")
    return args


def returns(signature):
    before = signature[:signature.index("(")].replace("static ", "").replace("NV_API_CALL ", "").split()
    kinds = {"void": "void", "NV_STATUS": "u32", "NvBool": "u32"}
    return kinds.get(before[0])


def written(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(written(item) for item in value) + "]"
    return '"' + value + '"'


def hook_lines(directory, group):
    words, members = hook_groups.GROUPS[group]
    known = {row["function"]: row for row in rows(directory, "hooks.csv")}
    lines = [f"# --kernel {group}: {words}"]
    for member in members:
        name, keys = member if isinstance(member, tuple) else (member, {})
        keys = dict(keys)
        tracepoint = keys.pop("tracepoint", False)
        lines += ["", "[[function]]", f'{"tracepoint" if tracepoint else "kprobe"} = "{name}"']
        if not tracepoint:
            if name not in known:
                refuse(f"group {group}: {name} is not in hooks.csv")
            signature = known[name]["signature_580"]
            # of the driver's core the kernel has no type information
            if known[name]["attach"] == "kprobe" and "args" not in keys:
                keys["args"] = ordered_args(signature)
            if signature and "returns" not in keys and returns(signature):
                keys["returns"] = returns(signature)
        lines += [f"{key} = {written(value)}" for key, value in keys.items()]
    return lines


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tables, out = sys.argv[1:]
    known = structs(tables)
    files = {
        "escapes.txt": escape_lines(tables, known),
        "uvm.txt": uvm_lines(tables, known),
        "classes.txt": class_lines(tables, known),
        "controls.txt": control_lines(tables),
        "status.txt": status_lines(tables),
        "xid.txt": xid_lines(tables),
    }
    for group in hook_groups.GROUPS:
        files[f"hooks/{group}.toml"] = hook_lines(tables, group)
    os.makedirs(os.path.join(out, "hooks"), exist_ok=True)
    for name, lines in files.items():
        with open(os.path.join(out, name), "w") as file:
            file.write("\n".join(lines) + "\n")


main()
