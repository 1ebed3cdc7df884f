"""Our kernels in an object or archive that nvcc made: instructions, registers, stack and shared memory of each, for each
architecture. Read from the file itself (fat binaries, and in them ELF files), because cuobjdump is not in every toolkit.

Start at: kernels.
"""

import collections
import ctypes
import ctypes.util
import re
import struct
import subprocess

Kernel = collections.namedtuple("Kernel", "instructions registers stack shared")

FATBIN = struct.pack("<I", 0xBA55ED50)
ELF_KIND = 2
ZSTD_FLAG, OTHER_COMPRESSION = 0x8000, 0x2000
# Attributes of .nv.info with a symbol and a number.
FRAME_SIZE, REGISTERS = 0x11, 0x2F
INSTRUCTION_BYTES = 16
NOP = 0x918  # the lowest 12 bits; the code of a function is padded with them


def _zstd(data, size):
    library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(size)
    got = library.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    if got != size:
        raise ValueError("a fat binary cannot be decompressed")
    return out.raw


def _cubins(data):
    """(architecture, ELF file) of each in the file."""
    at = data.find(FATBIN)
    while at >= 0:
        _, _, header, size = struct.unpack_from("<IHHQ", data, at)
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, header, padded, packed, _, _, _, arch = struct.unpack_from("<HHIQIIHHI", data, entry)
            flags, _, unpacked = struct.unpack_from("<QQQ", data, entry + 40)
            if kind == ELF_KIND:
                if flags & OTHER_COMPRESSION:
                    raise ValueError("a fat binary is compressed in a way that is not known here")
                begin = entry + header
                yield arch, (_zstd(data[begin:begin + packed], unpacked) if flags & ZSTD_FLAG
                             else data[begin:begin + padded])
            entry += header + padded
        at = data.find(FATBIN, end)


def _sections(elf):
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, number, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * size) for i in range(number)]

    def name(at):
        at += headers[names][4]
        return elf[at:elf.index(b"\0", at)].decode()

    # SHT_NOBITS, as of shared memory, has a size and no bytes.
    return {name(h[0]): (h[5], b"" if h[1] == 8 else elf[h[4]:h[4] + h[5]]) for h in headers}


def _attributes(sections):
    """{symbol's number: {attribute: value}} of .nv.info."""
    found = collections.defaultdict(dict)
    data = sections.get(".nv.info", (0, b""))[1]
    at = 0
    while at < len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:
            if size == 8:
                symbol, value = struct.unpack_from("<II", data, at)
                found[symbol][attribute] = value
            at += size
    return found


def _symbols(sections):
    names, table = sections[".strtab"][1], sections[".symtab"][1]
    for number in range(len(table) // 24):
        (at,) = struct.unpack_from("<I", table, number * 24)
        yield number, names[at:names.index(b"\0", at)].decode()


def _instructions(code):
    words = struct.unpack(f"<{len(code) // 8}Q", code)[::2]
    count = len(words)
    while count > 0 and words[count - 1] & 0xFFF == NOP:
        count -= 1
    return count


def _plain(names):
    """As in the source: without namespaces, parameters, and what nvcc adds to names of anonymous namespaces."""
    mangled = "\n".join(re.sub(r"^__nv_static_\w*?_(_Z)", r"\1", name) for name in names)
    text = subprocess.run(["c++filt", "-p"], input=mangled, capture_output=True, text=True, check=True).stdout
    plain = []
    for line in text.splitlines():
        line = re.sub(r"tessera::(?:[a-z_]+::)*(?:_GLOBAL__N__\w+::|\(anonymous namespace\)::)?", "", line)
        plain.append(re.sub(r"^void ", "", line))
    return plain


def kernels(path):
    """{(architecture, name): Kernel}"""
    with open(path, "rb") as file:
        data = file.read()
    found = {}
    for arch, elf in _cubins(data):
        sections = _sections(elf)
        attributes = _attributes(sections)
        for number, name in _symbols(sections):
            code = sections.get(".text." + name)
            # (Not those of CUDA's own libraries.)
            if code is None or "tessera" not in name or REGISTERS not in attributes[number]:
                continue
            found[arch, name] = Kernel(_instructions(code[1]), attributes[number][REGISTERS],
                                       attributes[number].get(FRAME_SIZE, 0),
                                       sections.get(".nv.shared." + name, (0, b""))[0])
    return {(arch, name): kernel for ((arch, _), kernel), name in zip(found.items(), _plain([n for _, n in found]))}
