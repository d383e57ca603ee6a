/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory accesses that the VMM performs; see guest_access.h. */
#include "guest_access.h"

#include <string.h>

#include "det.h"
#include "exception.h"
#include "insn/access.h"
#include "sysreg.h"
#include "table_pages.h"
#include "translate.h"
#include "vm_priv.h"
#include "written.h"

#define ACCESS_BYTES_MAX 64u

uint64_t memory_read_x(void *opaque, unsigned reg)
{
    struct vcpu *vcpu = opaque;

    return engine_x(vcpu->engine, reg);
}

static void write_x(void *opaque, unsigned reg, uint64_t value)
{
    struct vcpu *vcpu = opaque;

    engine_set_x(vcpu->engine, reg, value);
}

static void read_v(void *opaque, unsigned reg, uint64_t out_value[2])
{
    struct vcpu *vcpu = opaque;

    engine_v(vcpu->engine, reg, out_value);
}

static void write_v(void *opaque, unsigned reg, const uint64_t value[2])
{
    struct vcpu *vcpu = opaque;

    engine_set_v(vcpu->engine, reg, value);
}

static struct access access_of(struct vcpu *vcpu, bool write, bool unprivileged)
{
    uint64_t pstate = engine_pstate(vcpu->engine);

    return (struct access){
        .type = write ? ACCESS_WRITE : ACCESS_READ,
        .el0 =
            pstate_el(pstate) == 0 || (unprivileged && !(pstate & PSTATE_UAO)),
        .pan = (pstate & PSTATE_PAN) != 0,
    };
}

/* The exception's class follows the EL it is taken from, not the access's. */
static bool from_el0(struct vcpu *vcpu)
{
    return pstate_el(engine_pstate(vcpu->engine)) == 0;
}

/* A store to a translation table, while somebody listens to pte_store. */
struct table_store {
    gpa_t pa;             /* of the first descriptor */
    unsigned descriptors; /* 0: no table, or nobody listens */
    uint64_t old[ACCESS_BYTES_MAX / 8 + 1];
};

static uint64_t descriptor_at(struct vcpu *vcpu, gpa_t pa)
{
    const uint64_t *host = vm_ram_at(vcpu->vm, pa, sizeof(uint64_t));

    return host ? __atomic_load_n(host, __ATOMIC_RELAXED) : 0;
}

static void table_store_begin(struct vcpu *vcpu, bool write, gpa_t pa,
                              unsigned bytes, struct table_store *out_store)
{
    out_store->descriptors = 0;
    /* The ledger's lock is held until the store was told. */
    if (!write || !table_pages_has(vcpu->vm, pa)) {
        return;
    }
    ledger_watch_lock(vcpu->vm->ledger);
    out_store->pa = pa & ~UINT64_C(7);
    out_store->descriptors = (unsigned)((pa + bytes + 7 - out_store->pa) / 8);
    for (unsigned i = 0; i < out_store->descriptors; i++) {
        out_store->old[i] = descriptor_at(vcpu, out_store->pa + i * 8);
    }
}

/*
 * One event for each descriptor that changed. In `parallel` two vCPUs that
 * store to the same one at once may be reported in the wrong order, unless the
 * ledger listens.
 */
static void table_store_end(struct vcpu *vcpu, gva_t pc,
                            const struct table_store *store)
{
    for (unsigned i = 0; i < store->descriptors; i++) {
        gpa_t pa = store->pa + i * 8;
        uint64_t value = descriptor_at(vcpu, pa);

        if (value != store->old[i]) {
            event_emit(vcpu->events, vcpu->id, EVENT_pte_store, pc, pa,
                       store->old[i], value, 8);
            if (vcpu->vm->det) {
                det_pte_stored(vcpu, pa, store->old[i], value);
            }
        }
    }
    if (store->descriptors) {
        ledger_watch_unlock(vcpu->vm->ledger);
    }
}

static void count_atomic(struct vcpu_counters *c, const struct insn *insn,
                         const struct atomic_io *io)
{
    switch ((int)insn->kind) {
    case INSN_LOAD_EXCLUSIVE:
        c->load_exclusive++;
        break;
    case INSN_STORE_EXCLUSIVE:
        if (io->failed) {
            c->store_exclusive_failed++;
        } else {
            c->store_exclusive++;
        }
        break;
    case INSN_LSE:
        if (insn->op == LSE_SWP) {
            c->atomic_swap++;
        } else {
            c->atomic_rmw++;
        }
        break;
    case INSN_CAS:
        c->atomic_cas++;
        break;
    case INSN_LOAD_ACQUIRE:
        c->load_acquire++;
        break;
    case INSN_STORE_RELEASE:
        c->store_release++;
        break;
    default:
        break;
    }
}

/*
 * A fault of the atomic at va. LDXR and load-acquire report a read; a
 * store-exclusive that would fail anyway still faults, which is allowed.
 */
static bool atomic_fault(struct vcpu *vcpu, gva_t pc, gva_t va, bool write,
                         struct translate_fault fault, bool external,
                         struct exception *out_exception)
{
    *out_exception = exception_data_abort(&(struct data_abort){
        .pc = pc,
        .far = va,
        .el0 = from_el0(vcpu),
        .write = write,
        .on_access = external,
        .fault = external ? WALK_FAULT_EXTERNAL : fault.fault,
        .level = fault.level,
    });
    return false;
}

bool memory_atomic(struct vcpu *vcpu, const struct insn *insn, gva_t pc,
                   struct exception *out_exception)
{
    struct vm *vm = vcpu->vm;
    bool write =
        insn->kind != INSN_LOAD_EXCLUSIVE && insn->kind != INSN_LOAD_ACQUIRE;
    gva_t va = engine_x(vcpu->engine, insn->rn) + (uint64_t)insn->offset;
    struct access access = access_of(vcpu, write, false);
    struct translate_fault fault;
    struct table_store store;
    struct atomic_io io;
    /* A fault that a read would have as well is reported as the read's. */
    bool reads = insn->kind == INSN_LSE || insn->kind == INSN_CAS;
    void *host;
    gpa_t pa;

    if (va & (insn_bytes(insn) - 1)) {
        *out_exception = exception_data_abort(&(struct data_abort){
            .pc = pc,
            .far = va,
            .el0 = from_el0(vcpu),
            .write = write && !reads,
            .alignment = true,
        });
        return false;
    }
    fault = translate(vcpu, va, &access, &pa);
    if (fault.fault != WALK_OK) {
        access.type = ACCESS_READ;
        if (reads && translate(vcpu, va, &access, &pa).fault != WALK_OK) {
            write = false;
        }
        return atomic_fault(vcpu, pc, va, write, fault, false, out_exception);
    }
    host = vm_ram_at(vm, pa, insn_bytes(insn));
    if (!host) {
        if (insn->kind == INSN_LOAD_ACQUIRE ||
            insn->kind == INSN_STORE_RELEASE) {
            /* Ordered accesses to devices are plain ones, in order. */
            return memory_access(vcpu, insn->word, pc, out_exception);
        }
        return atomic_fault(vcpu, pc, va, write && !reads, fault, true,
                            out_exception);
    }
    if (insn->kind == INSN_STORE_EXCLUSIVE && access.el0 != vcpu->monitor_el0) {
        /* An exception return came in between, which clears the monitor; a
         * native one is not seen (docs/CAVEATS.md). */
        exclusive_state_clear(&vcpu->monitor);
    }
    vcpu->monitor_el0 = access.el0;
    if (write) {
        written_note(vm, pa);
    }
    atomic_gather(insn, memory_read_x, vcpu, &io);
    table_store_begin(vcpu, write, pa, insn_bytes(insn), &store);
    (void)atomic_perform(vm->exclusives, &vcpu->monitor, insn, host, pa, &io);
    table_store_end(vcpu, pc, &store);
    for (unsigned i = 0; i < io.outputs; i++) {
        if (io.out[i].reg != 31) {
            engine_set_x(vcpu->engine, io.out[i].reg, io.out[i].value);
        }
    }
    count_atomic(vcpu->counters, insn, &io);
    return true;
}

/* One access, translated: at most two pages. */
struct pieces {
    unsigned count;
    struct {
        gpa_t pa;
        unsigned bytes;
        uint8_t *host; /* NULL: a device */
    } part[2];
};

static bool translate_pieces(struct vcpu *vcpu, const struct access_insn *a,
                             gva_t start, struct access access, gva_t pc,
                             struct pieces *out,
                             struct exception *out_exception)
{
    unsigned left = a->bytes;

    out->count = 0;
    while (left) {
        unsigned in_page = (unsigned)(MMU_PAGE_SIZE - (start & MMU_PAGE_MASK));
        unsigned bytes = left < in_page ? left : in_page;
        struct translate_fault fault;
        gpa_t pa = 0;

        fault = translate(vcpu, start, &access, &pa);
        if (fault.fault != WALK_OK) {
            *out_exception = exception_data_abort(&(struct data_abort){
                .pc = pc,
                .far = start,
                .el0 = from_el0(vcpu),
                .write = access.type == ACCESS_WRITE,
                .fault = fault.fault,
                .level = fault.level,
            });
            return false;
        }
        out->part[out->count].pa = pa;
        out->part[out->count].bytes = bytes;
        out->part[out->count].host = vm_ram_at(vcpu->vm, pa, bytes);
        out->count++;
        start += bytes;
        left -= bytes;
    }
    return true;
}

/* Single-copy atomic where the guest's access is: aligned and small. */
static void copy_ram(void *to, const void *from, unsigned bytes, void *shared)
{
    if (((uintptr_t)shared & (bytes - 1)) == 0) {
        switch (bytes) {
        case 8:
            __atomic_store_n(
                (uint64_t *)to,
                __atomic_load_n((const uint64_t *)from, __ATOMIC_RELAXED),
                __ATOMIC_RELAXED);
            return;
        case 4:
            __atomic_store_n(
                (uint32_t *)to,
                __atomic_load_n((const uint32_t *)from, __ATOMIC_RELAXED),
                __ATOMIC_RELAXED);
            return;
        case 2:
            __atomic_store_n(
                (uint16_t *)to,
                __atomic_load_n((const uint16_t *)from, __ATOMIC_RELAXED),
                __ATOMIC_RELAXED);
            return;
        default:
            break;
        }
    }
    for (unsigned i = 0; i < bytes; i++) {
        __atomic_store_n(
            (uint8_t *)to + i,
            __atomic_load_n((const uint8_t *)from + i, __ATOMIC_RELAXED),
            __ATOMIC_RELAXED);
    }
}

/* Element by element, so that a device sees the sizes that were written. */
static bool device_transfer(struct vcpu *vcpu, const struct access_insn *a,
                            gpa_t pa, uint8_t *buffer)
{
    struct bus *bus = vcpu->vm->bus;

    for (unsigned i = 0; i < a->count; i++) {
        const struct access_element *e = &a->element[i];

        for (unsigned done = 0; done < e->bytes;) {
            unsigned size = e->bytes > 8 ? 8 : e->bytes;
            uint64_t value = 0;
            enum bus_result result;

            if (a->is_store) {
                memcpy(&value, buffer + e->offset + done, size);
                result = bus_write(bus, vcpu->id, pa + e->offset + done, value,
                                   size);
                vcpu->counters->mmio_writes++;
            } else {
                result = bus_read(bus, vcpu->id, pa + e->offset + done, size,
                                  &value);
                memcpy(buffer + e->offset + done, &value, size);
                vcpu->counters->mmio_reads++;
            }
            if (result != BUS_OK) {
                vcpu->counters->unknown_mmio++;
                return false;
            }
            done += size;
        }
    }
    return true;
}

static bool transfer(struct vcpu *vcpu, const struct access_insn *a,
                     const struct pieces *pieces, uint8_t *buffer)
{
    unsigned offset = 0;

    if (pieces->count == 1 && !pieces->part[0].host) {
        return device_transfer(vcpu, a, pieces->part[0].pa, buffer);
    }
    for (unsigned i = 0; i < pieces->count; i++) {
        if (!pieces->part[i].host) {
            return false; /* half a device */
        }
    }
    if (pieces->count == 1 && a->count > 1) {
        /* Each register of a pair is single-copy atomic by itself. */
        for (unsigned i = 0; i < a->count; i++) {
            const struct access_element *e = &a->element[i];
            uint8_t *ram = pieces->part[0].host + e->offset;

            copy_ram(a->is_store ? ram : buffer + e->offset,
                     a->is_store ? buffer + e->offset : ram, e->bytes, ram);
        }
        return true;
    }
    for (unsigned i = 0; i < pieces->count; i++) {
        uint8_t *ram = pieces->part[i].host;
        unsigned bytes = pieces->part[i].bytes;

        copy_ram(a->is_store ? ram : buffer + offset,
                 a->is_store ? buffer + offset : ram, bytes, ram);
        offset += bytes;
    }
    return true;
}

bool memory_access(struct vcpu *vcpu, uint32_t word, gva_t pc,
                   struct exception *out_exception)
{
    struct access_regs regs = {memory_read_x, write_x, read_v, write_v, vcpu};
    uint8_t buffer[ACCESS_BYTES_MAX] __attribute__((aligned(16)));
    struct access_insn a;
    struct pieces pieces;
    struct table_store store;
    struct access access;
    gva_t address, start;
    uint64_t base;
    bool writeback, done;

    vcpu->access_pc = pc;
    if (!access_decode(word, &a) || a.bytes == 0 || a.bytes > sizeof(buffer) ||
        a.is_exclusive || a.is_atomic) {
        goto external; /* nothing that a device could be asked for */
    }
    address = access_address(&a, memory_read_x, vcpu, pc);
    start = access_start(&a, address);
    access = access_of(vcpu, a.is_store, a.is_unprivileged);
    if (!translate_pieces(vcpu, &a, start, access, pc, &pieces,
                          out_exception)) {
        return false;
    }
    if (!pieces.part[0].host && start & (a.align - 1u)) {
        *out_exception = exception_data_abort(&(struct data_abort){
            .pc = pc,
            .far = address,
            .el0 = from_el0(vcpu),
            .write = a.is_store,
            .alignment = true,
        });
        return false;
    }
    if (a.is_zero_block && !pieces.part[0].host) {
        goto external;
    }
    writeback = access_writeback(&a, memory_read_x, vcpu, &base);
    memset(buffer, 0, sizeof(buffer));
    if (a.is_store && !a.is_zero_block &&
        !access_emulate_store(&a, buffer, &regs)) {
        goto external;
    }
    for (unsigned i = 0; a.is_store && i < pieces.count; i++) {
        if (pieces.part[i].host) {
            written_note(vcpu->vm, pieces.part[i].pa);
        }
    }
    table_store_begin(vcpu, a.is_store && pieces.part[0].host,
                      pieces.part[0].pa, pieces.part[0].bytes, &store);
    done = transfer(vcpu, &a, &pieces, buffer);
    table_store_end(vcpu, pc, &store);
    if (!done) {
        goto external;
    }
    if (!a.is_store && !access_emulate_load(&a, buffer, &regs)) {
        goto external;
    }
    if (writeback) {
        engine_set_x(vcpu->engine, a.rn, base);
    }
    return true;

external:
    *out_exception = memory_abort(
        vcpu, pc,
        &(struct refused_fill){
            .valid = true,
            .is_device = true,
            .fault = WALK_FAULT_EXTERNAL,
            .type = access_decode(word, &a) && a.is_store ? ACCESS_WRITE
                                                          : ACCESS_READ,
            .page = VIEW_NO_PAGE,
        });
    return false;
}

struct exception memory_abort(struct vcpu *vcpu, gva_t pc,
                              const struct refused_fill *refused)
{
    struct data_abort abort = {
        .pc = pc,
        .far = refused->page,
        .el0 = from_el0(vcpu),
        .write = refused->type == ACCESS_WRITE,
        .on_access = refused->is_device,
        .fault = refused->fault,
        .level = refused->level,
    };
    struct access_insn a;
    uint32_t word;

    if (translate_word(vcpu, pc, &word) && access_decode(word, &a)) {
        gva_t address = access_address(&a, memory_read_x, vcpu, pc);

        abort.far = refused->page == VIEW_NO_PAGE
                        ? address
                        : access_fault_address(&a, address, refused->page);
        if (a.is_cache_op) {
            abort.cache_op = true;
            abort.write = true;
        } else if (!a.is_zero_block && address & (a.align - 1u) &&
                   (a.is_ordered || vcpu->sctlr & SCTLR_A)) {
            /* Comes first; the engine looks for it last. */
            abort.alignment = true;
            abort.far = address;
        }
    }
    return exception_data_abort(&abort);
}
