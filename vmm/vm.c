/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine: construction, run, totals. See vm.h. */
#include "vm.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/board.h"
#include "dev/board_fdt.h"
#include "det.h"
#include "error.h"
#include "mmu/inject.h"
#include "probes.h"
#include "table_pages.h"
#include "vm_priv.h"
#include "written.h"

/* Slots of execution views: one a code page, up to three more for variants. */
#define VIEW_SLOTS 16384u

static bool map_ram(struct vm *vm, GError **error)
{
    void *host = mmap(NULL, vm->config->mem, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (host == MAP_FAILED) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "%" PRIu64 " MiB of guest memory: %s; try a smaller --mem",
                    vm->config->mem >> 20, g_strerror(errno));
        return false;
    }
    vm->ram.base = BOARD_RAM_BASE;
    vm->ram.size = vm->config->mem;
    vm->ram.host = host;
    return true;
}

static bool load(struct vm *vm, GError **error)
{
    const struct vm_config *config = vm->config;
    struct board_fdt_config fdt = {
        .cpus = vm->cpus,
        .mem_size = config->mem,
        .cmdline = config->cmdline,
        .annot = true,
    };
    GBytes *dtb;
    bool placed;

    if (!loader_load(&vm->ram, config->kernel, config->initrd, &vm->image,
                     error)) {
        return false;
    }
    fdt.initrd_start = vm->image.initrd_start;
    fdt.initrd_end = vm->image.initrd_end;
    dtb = board_fdt_new(&fdt, error);
    if (!dtb) {
        return false;
    }
    placed = loader_place_dtb(&vm->ram, &vm->image, dtb, error);
    g_bytes_unref(dtb);
    return placed;
}

/* What the loader wrote. */
static void note_loaded(struct vm *vm)
{
    const struct loaded_image *image = &vm->image;
    const struct {
        uint64_t start, end;
    } range[] = {
        {image->kernel_start, image->kernel_end},
        {image->initrd_start, image->initrd_end},
        {image->dtb, image->dtb + LOADER_DTB_MAX},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(range); i++) {
        for (gpa_t pa = range[i].start & ~MMU_PAGE_MASK; pa < range[i].end;
             pa += MMU_PAGE_SIZE) {
            if (vm_ram_at(vm, pa, 1)) {
                written_note(vm, pa);
            }
        }
    }
}

static bool make_vcpus(struct vm *vm, GError **error)
{
    vm->vcpu = g_new0(struct vcpu *, vm->cpus);
    for (unsigned i = 0; i < vm->cpus; i++) {
        vm->vcpu[i] = vcpu_new(vm, i, error);
        if (!vm->vcpu[i]) {
            return false;
        }
    }
    /* Two and two, as the threads of a core with TTBR_EL1.CnP set. */
    for (unsigned i = 1;
         vm->config->hw.mode[HW_shared_tlb] != HW_OFF && i < vm->cpus; i += 2) {
        vcpu_share_tlb(vm->vcpu[i - 1], vm->vcpu[i]);
    }
    return true;
}

struct vm *vm_new(const struct vm_config *config, struct events *events,
                  GError **error)
{
    struct vm *vm = g_new0(struct vm, 1);

    vm->config = config;
    vm->events = events;
    vm->cpus = config->cpus;
    vm->inject = config->inject;
    vm->broadcast = config->tlb == VM_TLB_BROADCAST &&
                    !(vm->inject & INJECT_BIT(INJECT_BROADCAST_LOST));
    vm->hafdbs = config->hw.mode[HW_dbm] != HW_OFF;
    vm->epoch_ns = uv_hrtime();
    uv_mutex_init(&vm->error_lock);
    vm->exclusives = exclusives_new();
    vm->sched = config->engine == VM_ENGINE_PARALLEL
                    ? sched_parallel_new(vm, config->workers)
                    : sched_det_new(vm);
    if (vm->det) {
        trace_hash_attach(&vm->trace_hash, events);
    }
    if (config->probes_path) {
        vm->probes = probes_load(config->probes_path, config->symbols, error);
    }
    if ((vm->probes || !config->probes_path) && map_ram(vm, error) &&
        load(vm, error)) {
        vm->views =
            exec_views_new(vm->ram.size >> MMU_PAGE_SHIFT, VIEW_SLOTS, error);
        if (vm->det) {
            vm->written = g_new0(uint8_t, vm->ram.size >> MMU_PAGE_SHIFT);
            vm->written_want = WRITTEN_EVER;
            note_loaded(vm);
        }
        if (vm->det || event_wanted(events, EVENT_pte_store)) {
            table_pages_init(vm, !vm->det && config->ledger);
        }
        vm->loop = vm->views ? loop_new(vm, error) : NULL;
        if (vm->loop && machine_init(vm, error) && make_vcpus(vm, error)) {
            return vm;
        }
    }
    vm_free(vm);
    return NULL;
}

void vm_free(struct vm *vm)
{
    if (!vm) {
        return;
    }
    for (unsigned i = 0; vm->vcpu && i < vm->cpus; i++) {
        vcpu_free(vm->vcpu[i]);
    }
    g_free(vm->vcpu);
    machine_fini(vm);
    loop_free(vm->loop);
    if (vm->sched) {
        vm->sched->ops->free(vm->sched);
    }
    exec_views_free(vm->views);
    probes_free(vm->probes);
    exclusives_free(vm->exclusives);
    if (vm->ram.host) {
        munmap(vm->ram.host, vm->ram.size);
    }
    table_pages_fini(vm);
    g_free(vm->written);
    session_fini(&vm->session);
    g_free(vm->engine_error);
    uv_mutex_destroy(&vm->error_lock);
    g_free(vm);
}

uint64_t vm_now_ticks(void *opaque)
{
    struct vm *vm = opaque;

    return vm->sched->ops->now_ticks(vm->sched);
}

uint64_t vm_ticks_to_ns(const struct vm *vm, uint64_t ticks)
{
    return vm->epoch_ns + ticks * VM_TICK_NS;
}

void vm_stop(struct vm *vm, enum vm_outcome outcome)
{
    int none = VM_OUTCOME_NONE;

    (void)atomic_compare_exchange_strong(&vm->outcome, &none, (int)outcome);
    atomic_store(&vm->stopping, true);
    vm->sched->ops->stop(vm->sched);
    for (unsigned i = 0; i < vm->cpus; i++) {
        vcpu_request(vm->vcpu[i], VCPU_REQ_STOP);
    }
    if (!vm->det) { /* there the session ends the loop, after its last run */
        loop_stop(vm->loop);
    }
}

void vm_abandon(struct vm *vm, enum vm_outcome outcome)
{
    if (!vm->det) {
        vm_stop(vm, outcome);
        return;
    }
    atomic_store(&vm->abandoned, (int)outcome);
    for (unsigned i = 0; i < vm->cpus; i++) {
        vcpu_request(vm->vcpu[i], VCPU_REQ_YIELD);
    }
}

void vm_stop_error(struct vm *vm, char *text)
{
    uv_mutex_lock(&vm->error_lock);
    if (!vm->engine_error) {
        vm->engine_error = text;
        text = NULL;
    }
    uv_mutex_unlock(&vm->error_lock);
    g_free(text);
    vm_stop(vm, VM_OUTCOME_ENGINE_ERROR);
}

enum vm_outcome vm_run(struct vm *vm, GError **error)
{
    GError *start_error = NULL;
    enum vm_outcome outcome;

    vm->start_ns = uv_hrtime();
    if (!vm->det) {
        (void)vcpu_power_on(vm->vcpu[0], vm->image.entry, vm->image.dtb);
    }
    if (!vm->sched->ops->start(vm->sched, &start_error)) {
        vm_stop_error(vm, g_strdup(start_error->message));
        g_error_free(start_error);
    } else {
        loop_run(vm->loop);
    }
    vm->sched->ops->join(vm->sched);
    vm->stop_ns = uv_hrtime();
    loop_flush_console(vm->loop);
    for (unsigned i = 0; i < vm->cpus; i++) {
        if (atomic_load(&vm->vcpu[i]->powered)) {
            event_emit(vm->events, i, EVENT_vcpu_stop, 0, 1);
        }
    }
    outcome = (enum vm_outcome)atomic_load(&vm->outcome);
    if (outcome == VM_OUTCOME_ENGINE_ERROR) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENGINE, "%s", vm->engine_error);
    }
    return outcome;
}

static bool same_image(const char *what, const char *was, const char *is,
                       GError **error)
{
    if (was && strcmp(was, is) == 0) {
        return true;
    }
    g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                "the schedule is of another %s: its SHA-256 is %.16s..., this "
                "one's %.16s...; rebuild that version or record again",
                what, was ? was : "not given", is);
    return false;
}

bool vm_replay(struct vm *vm, const struct schedule *schedule, GError **error)
{
    if (!vm->det) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the schedule's run line is of the parallel engine, which "
                    "cannot be replayed");
        return false;
    }
    if (!same_image("kernel", schedule_get(schedule, "kernel-sha256"),
                    vm->image.kernel_sha256, error) ||
        (vm->image.initrd_sha256[0] &&
         !same_image("initial RAM disk",
                     schedule_get(schedule, "initrd-sha256"),
                     vm->image.initrd_sha256, error))) {
        return false;
    }
    vm->session.replay = schedule;
    return true;
}

void vm_take_session(struct vm *vm, struct session *out_session)
{
    *out_session = vm->session;
    out_session->last.finding = vm->finding;
    vm->session = (struct session){0};
}

void vm_probes_report(const struct vm *vm, bool verbose, FILE *out)
{
    probes_report(vm->probes, verbose, out);
}

int vm_exit_status(const struct vm *vm)
{
    uint64_t status;

    return annot_exit_status(vm->annot, &status) ? (int)(status & 0xff) : -1;
}

static void collect_guest(struct vm *vm, struct vm_totals *out)
{
    uint64_t addr, cpus;
    const void *host;

    /* Both are the guest's words: bounded before they are believed. */
    if (!annot_counters_location(vm->annot, &addr, &cpus) || cpus == 0 ||
        cpus > BOARD_MAX_CPUS) {
        return;
    }
    host = vm_ram_at(vm, addr, cpus * guest_counter_stride());
    if (host) {
        vm_totals_set_guest(out, host, (unsigned)cpus);
    }
}

void vm_collect(struct vm *vm, struct vm_totals *out)
{
    enum vm_outcome outcome = (enum vm_outcome)atomic_load(&vm->outcome);
    int status = vm_exit_status(vm);

    *out = (struct vm_totals){
        .config = vm->config,
        .events = vm->events,
        .outcome = vm_outcome_name(outcome),
        .has_exit_status = status >= 0,
        .exit_status = status,
        .wall_ns = vm->stop_ns - vm->start_ns,
        .guest_ns = vm->det ? det_time_ns(vm->det) : vm->stop_ns - vm->start_ns,
        .workers = vm->config->workers,
        .console_midline = loop_console_midline(vm->loop),
    };
    (void)annot_panic_code(vm->annot, &out->panic_code);
    g_strlcpy(out->kernel_sha256, vm->image.kernel_sha256,
              sizeof(out->kernel_sha256));
    for (unsigned i = 0; i < vm->cpus; i++) {
        struct vcpu_counters *c = events_counters(vm->events, i);
        const struct tlb_counters *t = tlb_counters(vm->vcpu[i]->tlb);

        c->walk_cache_hits = t->table_hits;
        out->instructions += c->instructions;
    }
    collect_guest(vm, out);
}
