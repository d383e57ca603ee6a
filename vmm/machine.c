/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The board: which devices there are and how their lines are connected. The
 * callbacks run on whatever thread caused them.
 */
#include "vm_priv.h"

#include "abi/board.h"
#include "det.h"
#include "exception.h"

static void on_irq_changed(void *opaque, unsigned cpu, bool pending)
{
    struct vm *vm = opaque;

    vm->sched->ops->irq(vm->sched, vm->vcpu[cpu], pending);
}

static void on_timer_line(void *opaque, unsigned cpu, unsigned intid,
                          bool level)
{
    struct vm *vm = opaque;

    gic_set_ppi(vm->gic, cpu, intid, level);
}

static void on_uart_tx(void *opaque, uint8_t byte)
{
    struct vm *vm = opaque;

    loop_console_put(vm->loop, byte);
}

static void on_uart_irq(void *opaque, bool level)
{
    struct vm *vm = opaque;

    gic_set_spi(vm->gic, BOARD_UART_INTID, level);
}

static void on_uart_room(void *opaque)
{
    struct vm *vm = opaque;

    loop_console_room(vm->loop);
}

static void on_mark(void *opaque, unsigned cpu, uint64_t value)
{
    struct vm *vm = opaque;

    event_emit(vm->events, cpu, EVENT_mark, 0, value);
    if (vm->det) {
        det_mark(vm->det, value);
    }
}

static void on_finding(void *opaque, unsigned cpu, uint64_t code)
{
    struct vm *vm = opaque;

    event_emit(vm->events, cpu, EVENT_finding, 0, code);
    vm->finding = code;
    vm_stop(vm, VM_OUTCOME_FINDING);
}

static unsigned on_choose(void *opaque, unsigned cpu, unsigned n)
{
    struct vm *vm = opaque;

    (void)cpu;
    return vm->det ? det_guest_choice(vm->det, n) : 0;
}

static void on_op_begin(void *opaque, unsigned cpu, uint64_t value,
                        uint64_t start, uint64_t end, unsigned promise)
{
    struct vm *vm = opaque;
    const struct event_op op = {
        .kind = (uint32_t)value,
        .task = value >> 32,
        .start = start,
        .end = end,
        .promise = promise,
    };

    event_op_begin(vm->events, cpu, vm->vcpu[cpu]->access_pc, op);
}

static void on_op_end(void *opaque, unsigned cpu, uint64_t value)
{
    struct vm *vm = opaque;
    const struct event_op op = {
        .kind = (uint32_t)value,
        .task = value >> 32,
    };

    event_op_end(vm->events, cpu, vm->vcpu[cpu]->access_pc, op);
}

static void on_frame(void *opaque, unsigned cpu, unsigned reg, uint64_t pa,
                     uint64_t pages)
{
    struct vm *vm = opaque;
    enum event_kind kind;

    switch (reg) {
    case ANNOT_REG_FRAME_FREE:
        kind = EVENT_frame_free;
        break;
    case ANNOT_REG_FRAME_ALLOC:
        kind = EVENT_frame_alloc;
        break;
    case ANNOT_REG_IO_BEGIN:
        kind = EVENT_io_begin;
        break;
    case ANNOT_REG_IO_END:
        kind = EVENT_io_end;
        break;
    case ANNOT_REG_FRAME_CLEAN:
        kind = EVENT_frame_clean;
        break;
    case ANNOT_REG_FRAME_DROP:
        kind = EVENT_frame_drop;
        break;
    default:
        kind = EVENT_copy_begin;
    }
    event_emit(vm->events, cpu, kind, vm->vcpu[cpu]->access_pc, pa, pages);
}

/* A bit for the CPU that a guest names by its number + 1; 0: for all. */
static uint64_t askers_of(uint32_t value)
{
    return value == 0    ? UINT64_MAX
           : value <= 64 ? UINT64_C(1) << (value - 1)
                         : 0;
}

static void on_promise(void *opaque, unsigned cpu, unsigned reg, uint64_t value)
{
    struct vm *vm = opaque;
    uint64_t pc = vm->vcpu[cpu]->access_pc;

    switch (reg) {
    case ANNOT_REG_WALK_BEGIN:
        event_emit(vm->events, cpu, EVENT_soft_walk_begin, pc, value);
        break;
    case ANNOT_REG_WALK_END:
        event_emit(vm->events, cpu, EVENT_soft_walk_end, pc);
        break;
    case ANNOT_REG_FLUSH_ASK:
        event_emit(vm->events, cpu, EVENT_flush_ask, pc, value);
        break;
    case ANNOT_REG_FLUSH_WAITED:
        event_emit(vm->events, cpu, EVENT_flush_waited, pc, value);
        break;
    case ANNOT_REG_FLUSH_SERVED:
        event_emit(vm->events, cpu, EVENT_flush_served, pc,
                   askers_of((uint32_t)value),
                   value >> 32 ? (value >> 32) - 1 : cpu);
        break;
    default:
        event_emit(vm->events, cpu, EVENT_flush_resume, pc, value);
    }
}

bool machine_init(struct vm *vm, GError **error)
{
    static const struct gic_callbacks gic = {.irq_changed = on_irq_changed};
    static const struct arch_timer_callbacks timer = {
        .now_ticks = vm_now_ticks,
        .line = on_timer_line,
    };
    static const struct pl011_callbacks uart = {
        .tx = on_uart_tx,
        .irq = on_uart_irq,
        .rx_room = on_uart_room,
    };
    static const struct annot_callbacks annot = {
        .mark = on_mark,
        .finding = on_finding,
        .choose = on_choose,
        .op_begin = on_op_begin,
        .op_end = on_op_end,
        .frame = on_frame,
        .promise = on_promise,
    };

    vm->bus = bus_new();
    vm->gic = gic_new(vm->cpus, &gic, vm);
    vm->timer = arch_timer_new(vm->cpus, BOARD_CNTFRQ, &timer, vm);
    vm->uart = pl011_new(&uart, vm);
    vm->annot = annot_new(&annot, vm);
    annot_set_features(
        vm->annot,
        (vm->config->ledger && !vm->probes ? ANNOT_FEATURE_LEDGER : 0) |
            (vm->config->hw.mode[HW_remote_unit] != HW_OFF
                 ? ANNOT_FEATURE_REMOTE_UNIT
                 : 0));
    return gic_attach(vm->gic, vm->bus, error) &&
           pl011_attach(vm->uart, vm->bus, error) &&
           annot_attach(vm->annot, vm->bus, error);
}

void machine_fini(struct vm *vm)
{
    annot_free(vm->annot);
    pl011_free(vm->uart);
    arch_timer_free(vm->timer);
    gic_free(vm->gic);
    bus_free(vm->bus);
}

struct vcpu *vm_vcpu_of_mpidr(struct vm *vm, uint64_t mpidr)
{
    for (unsigned i = 0; i < vm->cpus; i++) {
        if (vm->vcpu[i]->mpidr == mpidr) {
            return vm->vcpu[i];
        }
    }
    return NULL;
}

static int on_cpu_on(void *opaque, uint64_t mpidr, uint64_t entry,
                     uint64_t context)
{
    struct vm *vm = opaque;
    struct vcpu *target = vm_vcpu_of_mpidr(vm, mpidr);

    if (!target) {
        return PSCI_INVALID_PARAMETERS;
    }
    if (!vm_ram_at(vm, entry, 4)) {
        return PSCI_INVALID_ADDRESS;
    }
    return vcpu_power_on(target, entry, context) ? PSCI_SUCCESS
                                                 : PSCI_ALREADY_ON;
}

static int on_affinity_info(void *opaque, uint64_t mpidr, unsigned level)
{
    struct vm *vm = opaque;
    bool found = false;

    for (unsigned i = 0; i < vm->cpus; i++) {
        unsigned shift = level * 8;

        if (vm->vcpu[i]->mpidr >> shift != mpidr >> shift) {
            continue;
        }
        if (atomic_load(&vm->vcpu[i]->powered)) {
            return PSCI_AFFINITY_ON;
        }
        found = true;
    }
    return found ? PSCI_AFFINITY_OFF : PSCI_INVALID_PARAMETERS;
}

static void on_cpu_off(void *opaque, unsigned cpu)
{
    struct vm *vm = opaque;

    vcpu_stop_for(vm->vcpu[cpu], ACTION_OFF);
}

static void on_cpu_suspend(void *opaque, unsigned cpu)
{
    struct vm *vm = opaque;

    vcpu_stop_for(vm->vcpu[cpu], ACTION_PARK);
}

static void on_system_off(void *opaque)
{
    struct vm *vm = opaque;
    uint64_t code;

    vm_stop(vm, annot_panic_code(vm->annot, &code) ? VM_OUTCOME_PANIC
                                                   : VM_OUTCOME_OFF);
}

static void on_system_reset(void *opaque)
{
    vm_stop(opaque, VM_OUTCOME_RESET);
}

void machine_psci(struct vcpu *vcpu)
{
    static const struct psci_ops ops = {
        .cpu_on = on_cpu_on,
        .affinity_info = on_affinity_info,
        .cpu_off = on_cpu_off,
        .cpu_suspend = on_cpu_suspend,
        .system_off = on_system_off,
        .system_reset = on_system_reset,
    };
    uint64_t x[4];

    for (unsigned i = 0; i < 4; i++) {
        x[i] = engine_x(vcpu->engine, i);
    }
    vcpu->counters->psci_calls++;
    engine_set_x(vcpu->engine, 0, psci_call(&ops, vcpu->vm, vcpu->id, x));
}
