#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the first inputs of the fuzz targets: small, valid, and different.

  corpus.py [--check] DIR

DIR/TARGET/NAME.seed and DIR/TARGET.dict with the words of a text format. With
--check nothing is written: a file that is missing or differs is an error.
"""
import base64
import os
import struct
import sys
import zlib

RAM = 0x40000000


def elf(segments, entry, symbols=(), machine=183):
    """An executable; segments: (address, bytes, memory size)."""
    names = b"\0.symtab\0.strtab\0"
    strings, table = b"\0", b"\0" * 24
    for name, value, size, kind in symbols:
        table += struct.pack("<IBBHQQ", len(strings), 0x10 | kind, 0, 1,
                             value, size)
        strings += name + b"\0"
    offset = 64 + 56 * len(segments)
    headers, body = b"", b""
    for address, data, size in segments:
        headers += struct.pack("<IIQQQQQQ", 1, 7, offset + len(body), address,
                               address, len(data), size, 4096)
        body += data
    at = offset + len(body)
    sections = [(0,) * 10]
    if symbols:
        for where, data, name, kind, link, entry_size in (
                (0, table, 1, 2, 2, 24), (1, strings, 9, 3, 0, 0),
                (2, names, 9, 3, 0, 0)):
            sections.append((name, kind, 0, 0, at + len(b"".join(
                [table, strings, names][:where])), len(data), link, 1, 8,
                             entry_size))
        body += table + strings + names
    shoff = offset + len(body) if symbols else 0
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, machine,
                       1, entry, 64, shoff, 0, 64, 56, len(segments), 64,
                       len(sections) if symbols else 0,
                       3 if symbols else 0)
    tail = b"".join(struct.pack("<IIQQQQIIQQ", *s) for s in sections)
    return head + headers + body + (tail if symbols else b"")


def image(text_offset, size, flags=0xa, body=b"\x1f\x20\x03\xd5" * 4):
    return struct.pack("<IIQQQQQQ4sI", 0x14000010, 0, text_offset, size, flags,
                       0, 0, 0, b"ARM\x64", 0) + body


CODE = struct.pack("<8I", 0xd503201f, 0x14000001, 0xd5033f9f, 0xd5033fdf,
                   0xd508831f, 0xc85f7c20, 0xc8027c21, 0x17fffffe)
KERNELS = {
    "elf_one": elf([(RAM, CODE, 64)], RAM),
    "elf_two": elf([(RAM, CODE, 32), (RAM + 4096, b"", 8192)], RAM + 4),
    "image": image(0, 4096),
    "image_old": image(0, 0),
    "image_far": image(0x80000, 0x20000),
    "gzip": b"\x1f\x8b\x08" + b"\0" * 61,
    "zimg": b"MZ\0\0zimg" + b"\0" * 56,
}
SYMBOLS = {
    "functions": elf([(RAM, CODE, 64)], RAM, [
        (b"start", RAM, 16, 2), (b"loop", RAM + 16, 0, 0),
        (b"$x", RAM, 0, 0), (b".Lhere", RAM + 8, 0, 0),
        (b"data", RAM + 24, 8, 1), (b"start", RAM + 20, 4, 2)]),
    "last_byte": elf([(RAM, CODE, 64)], RAM, [
        (b"end", (1 << 64) - 1, 0, 2), (b"huge", 16, (1 << 64) - 1, 2)]),
    "none": elf([(RAM, CODE, 64)], RAM),
    "other_machine": elf([(RAM, CODE, 64)], RAM, machine=62),
}

HEADER = "shootdown-schedule: 1\n"
NUMBERS = ("choices: {}\ntrace-hash: 0123456789abcdef\n"
           "state-hash: fedcba9876543210\n\n")
PROBES = {
    "frames": "pages base=*0x1000 size=64 pa=0x40000000\n"
              "0x1000 frame_free page=x0 order=x1 # given away\n"
              "0x1004 frame_alloc exit pa=x0 bytes=x1@entry\n",
    "operations": "linear virt=0xffff000000000000 pa=0\n"
                  "0x1000 op kind=munmap start=x0 bytes=x1 promise=noaccess\n"
                  "0x1000 op_begin kind=3 start=x0 end=x1\n"
                  "0x1008 op_end kind=3\n",
    "walks": "0x1000 walk_begin root=x0\n0x1000 walk_end exit\n",
}

SCHEDULES = {
    "empty": HEADER + NUMBERS.format(0),
    "zeros": HEADER + "vcpus: 4\n" + NUMBERS.format(40) + "40\n",
    "mixed": HEADER + "run: --engine=seeded --seed=1 selftest\n"
             + NUMBERS.format(40)
             + "@0000000000000011 3 v1/3 a1/2*2 @0000000000abcdef a1/2*3 1 "
               "a1/2 g1023/1024 28\n@ffffffffffffffff\n",
    "escapes": HEADER + "append: a\\\\b\\x0ac\nother: \\x7f\n"
               + NUMBERS.format(3) + "v1/2*3\n",
}


def line(text):
    import hashlib
    data = text.encode()
    data += b"hash: " + hashlib.sha256(data).hexdigest().encode() + b"\n"
    packed = base64.b32encode(zlib.compress(data, 9)).decode()
    return packed.lower().rstrip("=")


CONFIGS = {
    "plain": "selftest",
    "seeded": "--engine=seeded --seed=7 --strategy=pct:3 --hw=adversarial "
              "--hw-prefetch=off --cpus=3 --tlb=ipi --filter=stale race_mix "
              "-- -n 3 -t 2",
    "vtime": "--engine vtime --max-steps 10 --snapshot-at 1 --runs 5 "
             "--ledger on --mem 64M selftest",
    "kernel": "--kernel k.elf --initrd 'a b' --symbols s --append "
              "'flush=sync x=\"y z\"' --tlb-sets 64 --tlb-ways 2 "
              "--tlb-replacement fifo --walk-cache 0",
    "modes": "--flush=sync --drain=dsb --bug=no-drain --engine=seeded "
             "--seed=0x10 --inject=tlbi-nothing --check=bbm selftest",
    "strategies": "--engine=seeded --strategy=icb:2 --seed=1 selftest",
}

LITMUS = {
    "message": """AArch64 MP
"a comment"
Hash=0123456789abcdef
TTHM=P0:HA,P1:HD EL0=P1 variant=vmsa,fatal
{ x=1; uint64_t y=x; [PTE(x)]=(oa:PA(x),valid:0,af:1);
0:X1=x; 0:X0=1; 1:X1=PTE(x); 1:X3=y; int64_t z[2]={1,2}; }
 P0          | P1.F        | P1 ;
 STR W0,[X1] | L0:         | LDR X0,[X1] ;
 DSB ISH     | MRS X9,ELR_EL1 | CBZ X0,L1 ;
 TLBI VAE1IS,X2 | ADD X9,X9,#4 | LDR X2,[X3,#8] ;
 DMB SY      | ERET        | L1: ISB ;
locations [0:X1; y; z[1];]
filter 1:X0=1
exists (1:X0=(oa:PA(x)) /\\ (not (x=2 \\/ 1:X2<>0)) /\\ fault(P1:L1,x))
""",
    "forall": """AArch64 F
{ 0:X0=x; }
 P0 ;
 LDXR W1,[X0] ;
 STXR W2,W1,[X0] ;
forall (x=0 \\/ ~fault(P0))
""",
    "comments": """AArch64 C
(* one (* in *) another *)
{ }
P0;
NOP;
~exists (true)
""",
    "table": "file\tname\tkind_published\tclass\n"
             "a/b.litmus\tb\tForbidden\tbase\nc.litmus\tc\tAllowed\t\n",
    "list": "# kinds\nb Required\nc Allowed # one\n",
}


def tables():
    """Registers, two levels of tables in 4 KiB, a few walks and TLBIs."""
    page = lambda pa, bits: struct.pack("<Q", pa | bits)
    root = page(0x1000, 3) + page(0x40000000, 0x741) + b"\0" * 16
    out = {}
    operations = b"".join(
        bytes([kind]) + struct.pack("<Q", va) for kind, va in (
            (0, 0), (1, 0x40000000), (2, 0xffff000000000000), (5, 0x200000)))
    operations += b"\x80" + struct.pack("<HQ", 0x0031, 0x40000)
    operations += b"\x80" + struct.pack("<HQ", 0x0030, 0)
    for name, tcr in (("small", 0x5_b519_3519), ("large", 0x15_b510_3510),
                      ("hardware_flags", 0x185_b510_3510),
                      ("one_level", 0x5_b52a_352a)):
        regs = (struct.pack("<I", 1) + tcr.to_bytes(6, "little")
                + struct.pack("<QQ", 0x1000, 0x1000))
        out[name] = regs + root + operations
    out["off"] = struct.pack("<I", 0) + b"\0" * 22 + root + operations
    return out


INSNS = {
    "sensitive": CODE,
    "accesses": struct.pack("<12I", 0xf9400020, 0xf8408c20, 0xf8607820,
                            0xa9400440, 0x3dc00020, 0x4c402020, 0x58000040,
                            0xd50b7420, 0x38400820, 0xc8dffc20, 0xf8200020,
                            0x48207c02),
    "system": struct.pack("<6I", 0xd53800a0, 0xd5182000, 0xd50342df,
                          0xd5087820, 0xd50b7e20, 0xd5031003),
}


def operation(what, *parts):
    return bytes([what]) + b"".join(
        value.to_bytes(count, "little") for value, count in parts)


DEVICES = {
    "boot": operation(0x80, (0, 1), (0, 3), (2, 8))
            + operation(0x80, (1, 1), (0x10080, 3), (0xffffffff, 8))
            + operation(0x80, (1, 1), (0x10100, 3), (0xffffffff, 8))
            + operation(0x07, (0xc230, 2), (0xf0, 8))
            + operation(0x07, (0xc667, 2), (1, 8))
            + operation(0x07, (0xc65d, 2), (1 << 24 | 7, 8))
            + operation(0x09, (0xc660, 2)) + operation(0x0f),
    "uart": operation(0x0c, (65, 1)) + operation(0x84, (3, 1), (0, 3))
            + operation(0x80, (3, 1), (0x38, 3), (16, 8)),
    "timer": operation(0x0a, (0xdf11, 2), (1, 8))
             + operation(0x0b, (1000, 8)) + operation(0x0e),
    "annotations": operation(0xc0, (4, 1), (8, 3), (5, 8))
                   + operation(0xc4, (4, 1), (0, 3)),
    "power": operation(0x0d, (0x84000000, 4), (0, 8), (0, 8), (0, 8))
             + operation(0x0d, (0xc4000003, 4), (1, 8), (RAM, 8), (0, 8)),
}

CORPUS = {
    "config": {n: t.encode() for n, t in CONFIGS.items()},
    "devices": DEVICES,
    "insn": INSNS,
    "kernel": KERNELS,
    "litmus": {n: t.encode() for n, t in LITMUS.items()},
    "mmu": tables(),
    "probes": {n: t.encode() for n, t in PROBES.items()},
    "schedule": {n: t.encode() for n, t in SCHEDULES.items()},
    "schedule_line": {n: line(t).encode() for n, t in SCHEDULES.items()},
    "symbols": SYMBOLS,
}

WORDS = {
    "config": """--append= --bug= --check=bbm --cpus= --drain= --engine=seeded
        --engine=vtime --engine=parallel --filter=stale --flush=sync --hw=
        --hw-apply= --hw-prefetch= --hw-dbm= --initrd= --inject= --kernel=
        --ledger=on --max-steps= --mem= --runs= --seed= --snapshot-at=
        --strategy= --symbols= --tlb=ipi --tlb-sets= --tlb-ways= --walk-cache=
        --tlb-replacement= --workers= random adversarial eager typical off on
        pct:3 pos surw icb:2 dfs chaos plain tlbi-nothing selftest race_mix
        18446744073709551615 0x 64M 2G 512 --""",
    "probes": """frame_free frame_alloc io_begin io_end copy_begin op op_begin
        op_end walk_begin walk_end exit pa= virt= page= order= bytes= kind=
        start= end= promise= root= task= @entry linear pages base=* size= munmap
        mprotect noaccess nowrite x0 x7 0x1000""",
    "litmus": """AArch64 P0 P1 exists ~exists forall locations filter fault
        (* *) { } ; | PTE( PA( pte_x TTD( oa: af: db: dbm: valid: el0: uint64_t
        int32_t uint8_t [2]={ P1.F EL0= TTHM= variant= Hash= LDR STR LDXR STXR
        LDAR STLR DSB ISB DMB TLBI VAE1IS VMALLE1 MSR MRS AT CBZ CBNZ B EOR ADD
        MOV CAS LDADD SWP ERET SVC W0 X1 XZR SP #8 /\\\\ \\\\/ not( true
        MMU:Translation MMU:Permission forbidden allowed required""",
    "schedule": """shootdown-schedule: 1 choices: trace-hash: state-hash: hash:
        @0123456789abcdef v1/2 a1/2*2 g1023/1024 0000000000000000 \\\\x0a
        50000000 1099511627775""",
}


def dictionary(words):
    return "".join(f'"{word}"\n' for word in words.split()).encode()


def main():
    check = sys.argv[1:2] == ["--check"]
    root = sys.argv[2 if check else 1]
    wrong = 0
    files = {f"{target}/{name}.seed": data for target, seeds in CORPUS.items()
             for name, data in seeds.items()}
    files.update({f"{target}.dict": dictionary(words)
                  for target, words in WORDS.items()})
    for name, data in files.items():
        path = os.path.join(root, name)
        if not check:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
            continue
        try:
            with open(path, "rb") as file:
                same = file.read() == data
        except OSError:
            same = False
        if not same:
            wrong += 1
            print(f"{path} is not what corpus.py writes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
