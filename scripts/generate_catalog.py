#!/usr/bin/env python3
"""Write the CUDA tables of gpuscope.

    generate_catalog.py TABLES_DIR OUT_DIR

TABLES_DIR (tables/cuda): CSV tables of the public CUDA headers (args.csv,
runtime_api.csv, driver_api.csv, structs.csv, enums.csv, families.csv,
cudaError_t.csv, CUresult.csv).
OUT_DIR receives cuda_runtime.toml, cuda_driver.toml, cuda_enums.toml,
cuda_structs.toml and cuda_errors.toml.

The output depends on the input only. Every argument's place (register or stack
slot) is computed again from the kinds written out and compared with the place
that the tables give; a difference ends the run with status 1 and writes nothing.
"""

import csv
import os
import re
import sys

import kernel_roles
import memory_roles
import work_roles

REGISTERS = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"]
SIZES = {
    "u8": 1, "i8": 1, "bool": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4, "f32": 4,
    "u64": 8, "i64": 8, "f64": 8, "size": 8, "devptr": 8, "ptr": 8, "handle": 8,
    "cstr": 8, "fn": 8, "text": 8, "dim3": 12,
}
SCALARS = {
    "size_t": "size", "int": "i32", "unsigned int": "u32", "unsigned long long": "u64",
    "long long": "i64", "long": "i64", "unsigned long": "u64",
    "float": "f32", "double": "f64", "CUdeviceptr": "devptr", "CUdeviceptr_v1": "u32",
    "CUdevice": "i32", "cuuint64_t": "u64", "cuuint32_t": "u32", "cudaLogIterator": "u32",
    "CUlogIterator": "u32", "CUlogicalEndpointId": "u32",
    "CUmemGenericAllocationHandle": "handle", "cudaTextureObject_t": "handle",
    "cudaSurfaceObject_t": "handle", "CUtexObject": "handle", "CUsurfObject": "handle",
    "cudaGraphConditionalHandle": "handle", "CUgraphConditionalHandle": "handle",
    "char": "i8", "signed char": "i8", "unsigned char": "u8", "short": "i16",
    "unsigned short": "u16",
}
# Types spelled as numbers or addresses whose meaning the tables' kind does not carry.
KIND_OF = {
    ("__cudaRegisterFunction", "hostFun"): "ptr",
    ("__cudaRegisterFunction", "deviceFun"): "cstr",
    ("__cudaRegisterVar", "hostVar"): "ptr",
    ("__cudaRegisterVar", "deviceAddress"): "cstr",
    ("__cudaRegisterManagedVar", "deviceAddress"): "cstr",
    ("__cudaPopCallConfiguration", "stream"): "*handle (out)",
    ("__cudaPushCallConfiguration", "stream"): "handle",
    ("cudaGraphMemFreeNodeGetParams", "dptr_out"): "*devptr (out)",
    ("cuGraphMemFreeNodeGetParams", "dptr_out"): "*devptr (out)",
    ("cuDeviceGetLuid", "luid"): "*bytes:8 (out)",
    ("cuMemPoolGetAttribute", "value"): "*u64 (out)",
}
# `void **` results that hold a device address although the type does not say so.
DEVICE_RESULTS = re.compile(
    r"^(cudaMalloc(Managed|Pitch|Async|FromPoolAsync)?|cudaIpcOpenMemHandle|"
    r"cudaExternalMemoryGetMappedBuffer|cudaGraphicsResourceGetMappedPointer|"
    r"cudaMemPoolImportPointer|cudaHostGetDevicePointer|cudaGetSymbolAddress|"
    r"cudaLibraryGetGlobal|cudaLibraryGetManaged)$")
CHATTY = re.compile(
    r"^(cudaGetDevice|cudaGetLastError|cudaPeekAtLastError|cuCtxGetDevice|cuCtxGetCurrent|"
    r"cuCtxPushCurrent|cuCtxPopCurrent|cuCtxSetCurrent|cuPointerGetAttributes?|"
    r"cudaPointerGetAttributes|cudaStreamIsCapturing|cuStreamIsCapturing|"
    r"cudaStreamGetCaptureInfo|cuStreamGetCaptureInfo|cuDeviceGetAttribute|"
    r"cudaDeviceGetAttribute|cudaGetDeviceCount|cuDeviceGetCount|cuDeviceGet|"
    r"cuGetProcAddress|cudaGetDriverEntryPoint(ByVersion)?|cudaFuncGetAttributes|"
    r"cuFuncGetAttribute|cuKernelGetAttribute|cudaOccupancy\w+|cuOccupancy\w+|"
    r"__cudaPushCallConfiguration|__cudaPopCallConfiguration|__cudaGetKernel|"
    r"cudaGetErrorString|cudaGetErrorName|cuGetErrorString|cuGetErrorName|"
    r"cudaDriverGetVersion|cudaRuntimeGetVersion|cuDriverGetVersion|"
    r"cudaThreadExchangeStreamCaptureMode|cuThreadExchangeStreamCaptureMode|"
    r"cudaGetFuncBySymbol|cuStreamGetCtx|cuStreamGetId|cudaStreamGetId|"
    r"cudaStreamGetPriority|cuStreamGetPriority|cudaStreamGetFlags|cuStreamGetFlags|"
    r"cuDevicePrimaryCtxGetState|__cudaRegister\w+|__cudaUnregisterFatBinary)$")
# Chatty getters of a value at hand: their time and result tell nothing, and a return probe doubles their cost.
TRIVIAL = re.compile(
    r"^(cudaGetDevice|cudaGetLastError|cudaPeekAtLastError|cuCtxGetDevice|cuCtxGetCurrent|"
    r"cuDevicePrimaryCtxGetState|cudaStreamIsCapturing|cuStreamIsCapturing|"
    r"cuDeviceGetAttribute|cudaDeviceGetAttribute|"
    r"__cudaPushCallConfiguration|__cudaPopCallConfiguration|__cudaRegister(Function|Var)|"
    r"cudaGetErrorString|cudaGetErrorName|cuGetErrorString|cuGetErrorName|"
    r"cudaDriverGetVersion|cudaRuntimeGetVersion|cuDriverGetVersion|cuGetProcAddress|"
    r"cudaThreadExchangeStreamCaptureMode|cuThreadExchangeStreamCaptureMode|"
    r"cuStreamGetCtx|cuStreamGetId|cudaStreamGetId|cudaStreamGetPriority|"
    r"cuStreamGetPriority|cudaStreamGetFlags|cuStreamGetFlags)$")
DROPPED_FIELD = re.compile(r"(^|\.)_*(reserved|unused|pad|padding|dummy)\w*$", re.I)


class Refused(Exception):
    """The tables contradict what would be written."""


def read(directory, name):
    with open(os.path.join(directory, name), newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def version(text):
    major, minor = text.replace("<=", "").split(".")
    return int(major), int(minor)


def bare(ctype):
    """A C type without qualifiers, tags and the trailing `*`."""
    text = re.sub(r"\b(const|struct|union|enum)\b", " ", ctype)
    return " ".join(text.replace("*", " ").split())


def majors(first, last, oldest, newest):
    """Soname-major range of a header range; empty when it is every one known."""
    low, high = first[0], last[0]
    if low <= oldest and high >= newest:
        return ""
    if low <= oldest:
        return f"-{high}"
    if high >= newest:
        return f"{low}-"
    return str(low) if low == high else f"{low}-{high}"


class Enums:
    """Named values by their short type name."""

    def __init__(self, rows):
        self.values, self.alias, self.used = {}, {}, set()
        members = {}
        for row in rows:
            members.setdefault(row["enum"], set()).add(row["name"])
        for row in rows:
            if not row["enum"] or row["enum"].startswith("#"):
                continue
            aliases = [a for a in row["typedef"].split("|") if a]
            name = min(aliases, key=lambda a: (len(a), a)) if aliases else row["enum"]
            for alias in [row["enum"], *aliases]:
                self.alias[alias] = name
            shared = os.path.commonprefix(sorted(members[row["enum"]]))
            if row["name"][len(shared):].strip("_").upper() in ("MAX", "COUNT", "MAX_ENUM"):
                continue
            value = int(row["value"], 0)
            old = self.values.setdefault(name, {}).get(value)
            if old is None or version(row["header_last"]) > old[1]:
                self.values[name][value] = (row["name"], version(row["header_last"]))

    def use(self, ctype):
        name = self.alias.get(bare(ctype))
        if name:
            self.used.add(name)
        return name


class Structs:
    """Flattened layouts by their short type name."""

    def __init__(self, rows, enums):
        self.enums, self.alias, self.used = enums, {}, set()
        self.layouts, self.library = {}, {}
        for row in rows:
            aliases = [a for a in row["typedefs"].split("|") if a]
            name = min(aliases, key=lambda a: (len(a), a)) if aliases else row["struct"]
            for alias in [row["struct"], *aliases]:
                self.alias[alias] = name
            span = (version(row["header_first"]), version(row["header_last"]))
            key = (span, int(row["struct_size"]))
            self.layouts.setdefault(name, {}).setdefault(key, []).append(row)
            self.library[name] = row["lib"]

    def use(self, ctype):
        name = self.alias.get(bare(ctype))
        if name:
            self.used.add(name)
        return name

    def size(self, name):
        return max(self.layouts[name])[1]

    def kind(self, row):
        kind, size, ctype = row["kind"], int(row["size"]), row["ctype"]
        if kind == "enum":
            name = self.enums.use(ctype)
            return f"enum:{name}" if name and size == 4 else f"u{size * 8}"
        if kind == "float":
            return "f32" if size == 4 else "f64"
        if kind == "fnptr":
            return "fn"
        if kind == "u64" and bare(ctype) in SCALARS:
            return SCALARS[bare(ctype)]
        if kind == "ptr_array":
            return f"chars:{size}" if ctype.startswith("char[") else f"bytes:{size}"
        if kind == "struct":
            return f"bytes:{size}"
        if kind.startswith("ptr"):
            return "ptr"
        return kind if SIZES.get(kind) == size else f"bytes:{size}"

    def leaves(self, rows):
        """(path, kind, offset, bytes, in a union) of every field that holds a value."""
        paths = [row["field"] for row in rows]
        parents = {p.rsplit(".", i)[0] for p in paths for i in range(1, p.count(".") + 1)}
        found = []
        for row in rows:
            path, offset, size = row["field"], int(row["offset"]), int(row["size"])
            named = re.fullmatch(r"\w+(\.\w+)*", path)
            if size == 0 or not named or path in parents or DROPPED_FIELD.search(path):
                continue
            array = re.fullmatch(r"((?:unsigned |signed )?\w[\w ]*?)\[(\d+)\]", row["ctype"])
            if row["kind"] == "ptr_array" and array and int(array[2]) <= 4:
                each = size // int(array[2])
                scalar = SCALARS.get(array[1].strip())
                if scalar and SIZES[scalar] == each and array[1] != "char":
                    for i in range(int(array[2])):
                        found.append((f"{path}.{i}", scalar, offset + i * each, each))
                    continue
            found.append((path, self.kind(row), offset, size))
        kept, shared = [], set()
        for path, kind, offset, size in found:
            inside = False
            for other, _, start, length in kept:
                if offset >= start + length or start >= offset + size:
                    continue
                parent = other.rpartition(".")[0]
                prefix = parent + "." if parent else ""
                if path.startswith(prefix) and path.count(".") > other.count(".") \
                        and start <= offset and offset + size <= start + length:
                    inside = True
                    continue
                a, b = path.split("."), other.split(".")
                same = 0
                while same < min(len(a), len(b)) - 1 and a[same] == b[same]:
                    same += 1
                shared.add(tuple(a[:same + 1]))
                shared.add(tuple(b[:same + 1]))
            if not inside:
                kept.append((path, kind, offset, size))
        marked = []
        for path, kind, offset, size in kept:
            parts = path.split(".")
            union = any(tuple(parts[:n]) in shared for n in range(1, len(parts) + 1))
            marked.append((path, kind, offset, size, union))
        return marked

    def variants(self, name):
        """[(majors, size, leaves)], newest first."""
        layouts = sorted(self.layouts[name].items(), reverse=True)
        (span, size), rows = layouts[0]
        newest = self.leaves(rows)
        if self.library[name] != "rt":
            return [("", size, newest)]
        chosen = [[span[0][0], 99, size, newest]]
        for (old_span, old_size), old_rows in layouts[1:]:
            leaves = self.leaves(old_rows)
            last = chosen[-1]
            if old_span[1][0] >= last[0] or (old_size == last[2] and
                    {l[:4] for l in leaves} <= {l[:4] for l in last[3]}):
                last[0] = min(last[0], old_span[0][0])
                continue
            chosen.append([old_span[0][0], last[0] - 1, old_size, leaves])
        oldest = chosen[-1][0]
        return [(majors((low, 0), (high, 0), min(oldest, 11) if low == oldest else 0, 99)
                 if len(chosen) > 1 else "", bytes_, leaves)
                for low, high, bytes_, leaves in chosen]


def value_bytes(kind, structs):
    if kind.startswith("enum:"):
        return 4
    if kind.startswith("bytes:"):
        return int(kind[6:])
    if kind.startswith("struct:"):
        return structs.size(kind[7:])
    return SIZES[kind]


def locate(kinds, structs):
    """System V x86-64 places of arguments given as written in `args`."""
    register, floating, stack, places = 0, 0, 8, []
    for kind in kinds:
        pointer = kind.startswith("*")
        word = kind.lstrip("*").split(" ")[0]
        size = 8 if pointer else value_bytes(word, structs)
        aggregate = not pointer and (word == "dim3" or word.split(":")[0] in ("struct", "bytes"))
        if not pointer and word in ("f32", "f64"):
            places.append(f"xmm{floating}:{size}")
            floating += 1
            continue
        words = (size + 7) // 8
        if (aggregate and size > 16) or register + words > 6:
            places.append(f"stack+{stack}:{size}")
            stack += words * 8
            continue
        parts = [min(8, size - 8 * i) for i in range(words)]
        places.append("+".join(f"{REGISTERS[register + i]}:{b}" for i, b in enumerate(parts)))
        register += words
    return places


def base(symbol):
    return re.sub(r"(_v\d+)?(_ptds|_ptsz)?$", "", symbol)


def argument_kind(row, base_name, enums, structs):
    known = KIND_OF.get((base_name, row["name"]))
    if known:
        return known
    kind, ctype, direction = row["kind"], row["ctype"], row["dir"]
    pointee = bare(row["pointee"])
    if kind in ("handle", "cstr", "size", "u8", "u16", "ptr"):
        return kind
    if kind == "fnptr":
        return "fn"
    if kind in ("devptr", "u32", "u64", "i32"):
        return SCALARS.get(bare(ctype), kind)
    if kind == "float":
        return "f32 (unreadable)"
    if kind == "enum":
        return "enum:" + enums.use(row["enum"])
    if kind == "struct":
        name = structs.use(ctype)
        if name == "dim3":
            return "dim3"
        if name.startswith(("cudaIpc", "CUipc")):
            return f"bytes:{structs.size(name)}"
        return "struct:" + name
    if kind == "char_buf":
        return "text (out)" if direction == "out" else "ptr"
    if kind == "ptr_cstr":
        return f"*cstr ({direction})"
    if kind == "ptr_handle":
        return f"*handle ({direction})"
    if kind == "ptr_scalar":
        return f"*{SCALARS[pointee]} ({direction})"
    if kind == "ptr_enum":
        return f"*enum:{enums.use(row['enum'])} ({direction})"
    if kind == "ptr_struct":
        name = structs.use(row["pointee"])
        if name in ("dim3", "uint3"):
            return f"*dim3 ({direction})"
        return f"*struct:{name} ({direction})"
    if kind == "ptr_ptr":
        if pointee == "cudaGraphicsResource":
            return f"*handle ({direction})"
        if direction == "in":
            return "ptr"
        if direction == "out" and DEVICE_RESULTS.match(base_name):
            return "*devptr (out)"
        return f"*ptr ({direction})"
    raise Refused(f"{row['symbol']}: unknown kind {kind}")


# Tried in order against the name without version and stream suffixes.
NAME_CLASSES = [(re.compile(p), c) for p, c in [
    (r"GetDriverEntryPoint|GetProcAddress|GetExportTable", "query"),
    (r"(LastError|GetError(Name|String))$", "error"),
    (r"^cu(da)?Stream(IsCapturing|GetCaptureInfo)", "query"),
    (r"^cu(da)?(Stream\w*Capture|Graph(?!ics)|ThreadExchangeStreamCapture|UserObject)"
     r"|DeviceGraphMemTrim|(Get|Set)GraphMemAttribute|cuStreamBeginRecapture", "graph"),
    (r"Synchronize$", "sync"),
    (r"^cu(da)?(DeviceSet|DevResourceGenerate|DevSmResourceSplit)", "context"),
    (r"AsyncNotification$", "other"),
    (r"^cu(da)?Ipc(Get|Open)EventHandle$", "event"),
    (r"^cu(da)?MemGet(Default)?MemPool$", "query"),
    (r"^(cu(da)?(Memcpy|FabricCpy)|cudaMemcpy)", "copy"),
    (r"^cu(da)?Memset", "memset"),
    (r"^cu(da)?Mem(Prefetch|DiscardAndPrefetch)", "prefetch"),
    (r"^cu(da)?Occupancy", "query"),
    (r"^cu(da)?(Graphics|GL|EGL|VDPAU|D3D|EventCreateFromEGL)", "other"),
    (r"^__cuda(Register|Unregister|InitModule|GetKernel)", "module"),
    (r"^cu(da)?(Module|Library|Link|Kernel|Func|GetKernel|GetFunc|GetSymbol)\w*"
     r"(Get(Attributes?|Name|Count|Module|ParamInfo|ParamCount|Loading\w*|SymbolSize)|IsLoaded)$"
     r"|^cudaGetSymbolSize", "query"),
    (r"^cu(da)?(Module|Library|Link|Kernel|Func|GetKernel|GetFunc|GetSymbol)", "module"),
    (r"^cu(da)?(Ctx(Record|Wait)Event|ExecutionCtx(Record|Wait)Event"
     r"|GreenCtx(Record|Wait)Event)", "event"),
    (r"^cu(da)?(Signal|Wait)ExternalSemaphores", "stream"),
    (r"^cu(da)?EventQuery|^cu(da)?StreamQuery", "query"),
    (r"^cu(da)?Event", "event"),
    (r"^cu(da)?(\w*)?(StreamCreate|GreenCtxStreamCreate)", "stream"),
    (r"^cu(da)?Stream\w*Get|^cudaStreamGet", "query"),
    (r"^cu(da)?(Stream|LaunchHostFunc)", "stream"),
    (r"^cuDevicePrimaryCtx(GetState)$", "query"),
    (r"^cu(DevicePrimaryCtx|Init$)", "context"),
    (r"^cu(da)?(Ctx|GreenCtx|ExecutionCtx|GreenCtxCreate|CtxFrom)\w*Get|^cuCtxGet", "query"),
    (r"^cu(da)?(Ctx|GreenCtx|ExecutionCtx|SetDevice|SetValidDevices|InitDevice|Thread)"
     r"|^cuda(DeviceReset|DeviceSet)|PeerAccess$|^cu(da)?FlushGPUDirect"
     r"|^cuda?DeviceFlush", "context"),
    (r"^cu(da)?(Get|Choose)?(Device|DevResource|DevSm|Driver|Runtime|GetDevice|ChooseDevice)",
     "query"),
    (r"^cu(da)?(Pointer(Get)|IpcGetEvent|IpcOpenEvent)", "query"),
    (r"^cu(da)?(Mem|Array|MipmappedArray|Mipmapped)\w*(Get(Info|Attributes?|AccessFlags|Access"
     r"|Level|Plane|Descriptor|Properties|MemoryRequirements|SparseProperties|Granularity"
     r"|AddressRange|LocationInfo|Count|AllocationPropertiesFromHandle)|GetAllocation\w+)$"
     r"|^cudaGetMipmapped|^cuda(Host)?GetFlags|^cudaHostGet|^cuMemHostGet"
     r"|^cuPointerGet", "query"),
    (r"^cu(da)?(Mem|Malloc|Free|Host|Array|Mipmapped|Ipc|Multicast|Import\w+Memory"
     r"|External\w*|Destroy\w+Memory|Pointer|CtxEnablePeer|LogicalEndpoint)", "memory"),
    (r"^cu(da)?Get", "query"),
]]


def family_of(symbol, api, families):
    """What the families table says of a symbol, or of the base of its variant."""
    plain = re.sub(r"(_ptds|_ptsz)$", "", symbol)
    for candidate in (plain, api, api + "_v2", base(symbol), base(symbol) + "_v2"):
        if candidate in families:
            return families[candidate]
    return []


def classify(symbol, api, families):
    name = base(symbol)
    roles = [(f["family"], f["role"], f["detail"]) for f in family_of(symbol, api, families)]
    for family, role, detail in roles:
        if family == "alloc":
            if role in ("alloc", "vmm_create"):
                return "alloc"
            if role in ("free", "vmm_release") and detail != "external":
                return "free"
            if role == "query":
                return "query"
            if role != "implicit_free_all":
                return "memory"
        elif family == "memcpy":
            return "copy"
        elif family == "memset":
            return "memset"
        elif family == "prefetch":
            return "memory" if "Advise" in name else "prefetch"
        elif family == "sync" and role in ("blocking", "poll"):
            return "sync" if role == "blocking" else "query"
        elif family == "launch":
            return "stream" if role == "host" else "launch"
        elif family == "graph":
            return "graph"
        elif family == "module" and not re.search(r"EntryPoint|ProcAddress|GetName", name):
            return "module"
    for pattern, result in NAME_CLASSES:
        if pattern.search(name):
            return result
    return "other"


def product(cls, name, args):
    """The `bytes` of a row whose arguments say how much it moves."""
    kinds = dict(args)

    def first(*names):
        for candidate in names:
            if kinds.get(candidate) in ("size", "u32"):
                return candidate
        return None

    if "Batch" in name or cls not in ("alloc", "copy", "memset", "prefetch"):
        return None
    if cls == "copy":
        for struct_arg in ("p", "pCopy"):
            kind = kinds.get(struct_arg, "")
            if kind.startswith("*struct:cudaMemcpy3D"):
                return "*".join(f"{struct_arg}.extent.{d}" for d in ("width", "height", "depth"))
            if kind.startswith("*struct:CUDA_MEMCPY"):
                dims = ["WidthInBytes", "Height"] + (["Depth"] if "3D" in kind else [])
                return "*".join(f"{struct_arg}.{d}" for d in dims)
        if first("width") and first("height"):
            return "width*height"
        return first("count", "ByteCount", "size")
    if cls == "memset":
        element = re.search(r"D(8|16|32)(Async)?$", name)
        factor = {"16": "*2", "32": "*4"}.get(element[1], "") if element else ""
        if first("N"):
            return "N" + factor
        if first("Width") and first("Height"):
            return "Width*Height" + factor
        if kinds.get("extent") == "struct:cudaExtent":
            return "extent.width*extent.height*extent.depth"
        if first("width") and first("height"):
            return "width*height"
        return first("count")
    if cls == "alloc":
        if kinds.get("pitchedDevPtr") == "*struct:cudaPitchedPtr (out)":
            return "pitchedDevPtr.pitch*extent.height*extent.depth"
        for pitch in ("pitch", "pPitch"):
            if kinds.get(pitch, "").endswith("(out)"):
                return f"{pitch}*" + (first("height", "Height") or "1")
        if re.search(r"Array", name):
            return None
        return first("size", "bytesize")
    return first("count")


def direction_of(cls, name, args):
    kinds = dict(args)
    if cls != "copy":
        return None
    if kinds.get("kind") == "enum:cudaMemcpyKind":
        return "kind"
    if "Peer" in name:
        return "PtoP"
    for struct_arg in ("p", "pCopy"):
        kind = kinds.get(struct_arg, "")
        if kind.startswith("*struct:cudaMemcpy3DParms"):
            return f"{struct_arg}.kind"
        if kind.startswith("*struct:CUDA_MEMCPY"):
            return f"{struct_arg}.srcMemoryType>{struct_arg}.dstMemoryType"
    letters = re.search(r"cuMemcpy([HDA])to([HDA])", name)
    if letters:
        return letters[1].replace("A", "D") + "to" + letters[2].replace("A", "D")
    return None


def memory_of(library, name, args):
    """The `memory` of a row: only for those whose arguments have the names that it is about."""
    role = {"driver": memory_roles.DRIVER, "runtime": memory_roles.RUNTIME}[library].get(name)
    names = {arg for arg, _ in args}
    wanted = re.findall(r"=(\w+)", role or "")
    if not role or not all(word in names for word in wanted):
        return None
    return role


def kernel_of(library, name, args):
    """The `kernel` and `shape` of a row."""
    function, shape = kernel_roles.DRIVER.get(name, (None, None)) if library == "driver" else (None, None)
    if function not in {arg for arg, _ in args}:
        return None, None
    return function, shape


def stub_of(library, name, args):
    stub = kernel_roles.STUBS.get(name) if library == "runtime" else None
    return stub if stub in {arg for arg, _ in args} else None


def names_of(library, name, args):
    """The `names` of a row: only where its arguments have the names that it is about."""
    role = kernel_roles.NAMES.get(name) if library == "driver" else None
    wanted = re.findall(r"(?:from=)?(\w+)(?: |$)", role or "")
    return role if all(word in {arg for arg, _ in args} for word in wanted) else None


RETURNS = {"cudaError_t": None, "CUresult": None, "void": "void", "const char *": "cstr",
           "char": "i32", "unsigned int": "u32", "void **": "ptr",
           "struct cudaChannelFormatDesc": "ptr"}


def raw_return(symbol):
    if symbol == "__cudaGetProcAddress":
        return "ptr"
    if symbol.startswith(("__cuda", "cudbg")):
        return "void"
    return None


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def rows_of(library, api_rows, args_by_symbol, families, enums, structs):
    newest_major = 13
    symbols = {}
    for row in api_rows:
        symbols.setdefault(row["symbol"], []).append(row)
    out = []
    for symbol in sorted(symbols):
        groups = sorted(symbols[symbol], key=lambda r: version(r["header_first"])
                        if r["header_first"] else (0, 0))
        kept = []
        for group in groups:
            if kept and (library == "driver" or version(kept[-1]["header_last"])[0]
                         == version(group["header_first"])[0]):
                kept[-1] = group
            else:
                kept.append(group)
        for place, group in enumerate(kept):
            span = ""
            if len(kept) > 1:
                low = (0, 0) if place == 0 else version(group["header_first"])
                high = (99, 0) if place == len(kept) - 1 else version(group["header_last"])
                span = majors(low, high, 0, newest_major)
            out.append(one_row(library, symbol, group, span, args_by_symbol, families,
                               enums, structs))
    return out


def one_row(library, symbol, group, span, args_by_symbol, families, enums, structs):
    api = group["api"]
    raw = not group["return"]
    name = base(symbol)
    found = args_by_symbol.get((symbol, group["header_first"], group["header_last"]), [])
    if not raw and len(found) != len([p for p in group["params"].split("; ") if p]):
        raise Refused(f"{symbol}: {len(found)} argument rows for `{group['params']}`")
    args, wanted = [], []
    if group["return"].startswith("struct "):
        args.append(("result", f"*struct:{structs.use(group['return'])} (out)"))
        wanted.append("rdi:8")
    for index, row in enumerate(found):
        args.append((row["name"] or f"arg{index}", argument_kind(row, name, enums, structs)))
        wanted.append(row["loc"])
    places = locate([kind for _, kind in args], structs)
    for (arg, kind), place, want in zip(args, places, wanted):
        if place != want:
            raise Refused(f"{symbol}: `{arg}: {kind}` computed at {place}, the tables say {want}")
    cls = classify(symbol, api, families)
    fields = [("library", quote(library)), ("symbol", quote(symbol)), ("class", quote(cls))]
    fields.append(("args", "[" + ", ".join(quote(f"{a}: {k}") for a, k in args) + "]"))
    size = product(cls, name, args)
    direction = direction_of(cls, name, args)
    kernel, shape = kernel_of(library, name, args)
    work = work_roles.role_of(symbol, name, [arg for arg, _ in args]) if library == "driver" else None
    roles = [f["role"] for f in family_of(symbol, api, families) if f["family"] == "sync"]
    returned = raw_return(symbol) if raw else RETURNS[group["return"]]
    forwards = re.fullmatch(r"__(cudaLaunchKernel(_ptsz)?)", symbol)
    for key, value in [
        ("bytes", size), ("direction", direction), ("memory", memory_of(library, name, args)),
        ("work", work),
        ("kernel", kernel), ("shape", shape), ("stub", stub_of(library, name, args)),
        ("names", names_of(library, name, args)), ("api", api if api != symbol else None),
        ("majors", span or None), ("forwards", forwards[1] if forwards else None),
        ("returns", returned),
    ]:
        if value:
            fields.append((key, quote(value)))
    if library == "driver" and name in kernel_roles.UNLOADS:
        fields.append(("unloads", "true"))
    if CHATTY.match(name):
        fields.append(("chatty", "true"))
    if TRIVIAL.match(name):
        fields.append(("trivial", "true"))
    if "poll" in roles:
        fields.append(("ok", "[600]"))
    elif name in ANSWERS:
        fields.append(("ok", f"[{ANSWERS[name]}]"))
    if raw:
        fields.append(("raw", "true"))
    return "[[function]]\n" + "\n".join(f"{k} = {v}" for k, v in fields) + "\n"


# What libraries ask for on purpose, and are answered by a code: memory that CUDA does not know, functions that this driver
# does not have, no context yet, no device, access that is enabled already.
ANSWERS = {
    "cuPointerGetAttribute": 1, "cuPointerGetAttributes": 1, "cudaPointerGetAttributes": 1,
    "cuDeviceGetAttribute": 1, "cudaDeviceGetAttribute": 1,
    "cuGetProcAddress": 500, "cudaGetDriverEntryPoint": 500, "cudaGetDriverEntryPointByVersion": 500,
    "cuCtxGetDevice": 201, "cuInit": 100, "cudaGetDeviceCount": 100,
    "cuCtxEnablePeerAccess": 704, "cudaDeviceEnablePeerAccess": 704,
}
# CUDA_ERROR_DEINITIALIZED, cudaErrorCudartUnloading: the program ends, and destructors still call
ENDED = 4

HEADER = "# Written by scripts/generate_catalog.py; edit that and run it again.\n\n"


def library_file(name, pattern, errors, rows):
    head = (f"[[library]]\nname = {quote(name)}\nmatch = {quote(pattern)}\n"
            f"errors = {quote(errors)}\nended = {ENDED}\n\n")
    return HEADER + head + "\n".join(rows)


def enum_file(tables):
    parts = []
    for name, values in tables:
        body = ", ".join(quote(f"{value}={text}") for value, text in values)
        parts.append(f"[[enum]]\nname = {quote(name)}\nvalues = [{body}]\n")
    return HEADER + "\n".join(parts)


def struct_file(structs):
    done, parts = set(), []
    for name in sorted(structs.used):
        done.add(name)
        for span, size, leaves in structs.variants(name):
            body = ",\n".join(
                "    " + quote(f"{path}: {kind} @{offset}" + (" (union)" if union else ""))
                for path, kind, offset, _, union in leaves)
            text = f"[[struct]]\nname = {quote(name)}\nsize = {size}\n"
            if span:
                text += f"majors = {quote(span)}\n"
            parts.append(text + (f"fields = [\n{body},\n]\n" if body else "fields = []\n"))
    return HEADER + "\n".join(parts)


def main(arguments):
    if len(arguments) != 3:
        sys.stderr.write("usage: generate_catalog.py TABLES_DIR OUT_DIR\n")
        return 2
    tables, out = arguments[1:]
    enums = Enums(read(tables, "enums.csv"))
    structs = Structs(read(tables, "structs.csv"), enums)
    families = {}
    for row in read(tables, "families.csv"):
        families.setdefault(row["symbol"], []).append(row)
    args = {}
    for row in read(tables, "args.csv"):
        key = (row["symbol"], row["header_first"], row["header_last"])
        args.setdefault(key, []).append(row)
    for group in args.values():
        group.sort(key=lambda r: int(r["idx"]))
    files = {}
    try:
        runtime = rows_of("runtime", read(tables, "runtime_api.csv"), args, families, enums, structs)
        driver = rows_of("driver", read(tables, "driver_api.csv"), args, families, enums, structs)
        files["cuda_structs.toml"] = struct_file(structs)
    except Refused as refusal:
        sys.stderr.write(f"generate_catalog.py: {refusal}\n")
        return 1
    files["cuda_runtime.toml"] = library_file("runtime", "libcudart.so*", "cudaError_t", runtime)
    files["cuda_driver.toml"] = library_file("driver", "libcuda.so*", "CUresult", driver)
    errors = []
    for name in ("cudaError_t", "CUresult"):
        table = sorted((int(r["value"]), r["name"]) for r in read(tables, name + ".csv"))
        errors.append((name, table))
    files["cuda_errors.toml"] = enum_file(errors)
    files["cuda_enums.toml"] = enum_file(
        (name, sorted((v, n[0]) for v, n in enums.values[name].items()))
        for name in sorted(enums.used - {"cudaError_t", "CUresult"}))
    os.makedirs(out, exist_ok=True)
    for name, text in files.items():
        with open(os.path.join(out, name), "w", encoding="utf-8", newline="\n") as handle:
            handle.write(text)
    sys.stderr.write(f"{len(runtime)} runtime rows, {len(driver)} driver rows\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
