/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What plugins may ask of a running machine; see obs/plugin.h. */
#include "cmd.h"
#include "insn/disas.h"
#include "obs/plugin.h"
#include "translate.h"
#include "vm_priv.h"

/* On the thread of the vCPU, from a callback: nothing is filled or counted. */
static bool read_memory(void *opaque, unsigned id, uint64_t va, void *buf,
                        size_t len)
{
    struct vm *vm = opaque;
    uint8_t *out = buf;

    if (id >= vm->cpus) {
        return false;
    }
    while (len) {
        size_t bytes = MMU_PAGE_SIZE - (va & MMU_PAGE_MASK);
        struct walk_result w = translate_walk(vm->vcpu[id], va, false);
        const uint8_t *host;

        bytes = bytes < len ? bytes : len;
        if (w.fault != WALK_OK) {
            return false;
        }
        host = vm_ram_at(vm, translation_pa(&w.t, va), bytes);
        if (!host) {
            return false;
        }
        /* Others may be storing: byte by byte is as good as it gets. */
        for (size_t i = 0; i < bytes; i++) {
            out[i] = __atomic_load_n(host + i, __ATOMIC_RELAXED);
        }
        va += bytes;
        out += bytes;
        len -= bytes;
    }
    return true;
}

static bool disassemble(void *opaque, uint64_t pc, uint32_t word, char *buf,
                        size_t size)
{
    struct disas *disas = disas_new();

    (void)opaque;
    if (!disas) {
        return false;
    }
    disas_text(disas, word, pc, buf, size);
    disas_free(disas);
    return true;
}

void vm_services(struct vm *vm, struct plugin_services *out_services)
{
    *out_services = (struct plugin_services){
        .opaque = vm,
        .read_memory = read_memory,
        .disassemble = disassemble,
    };
}
