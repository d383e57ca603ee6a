/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The annotation device: latches and callbacks. Any thread. */
#include "dev/annot.h"

#include <stdatomic.h>
#include <string.h>
#include <uv.h>

#include "abi/board.h"

/*
 * Plain data, saved and restored as it is. No gaps, so that equal states are
 * equal bytes.
 */
struct annot_state {
    uint64_t counters_addr, counters_cpus;
    uint64_t exit_status, panic_code, last_mark;
    bool has_addr, has_cpus, has_exit, has_panic;
    uint8_t reserved[4];             /* 0 */
    uint16_t answer[BOARD_MAX_CPUS]; /* to each CPU's last question */
    /* Of each CPU's next operation. */
    uint64_t op_start[BOARD_MAX_CPUS], op_end[BOARD_MAX_CPUS];
};

_Static_assert(sizeof(struct annot_state) == 48 + 18 * BOARD_MAX_CPUS &&
                   BOARD_MAX_CPUS % 4 == 0,
               "no gaps");
_Static_assert(ANNOT_CHOOSE_MAX <= UINT16_MAX, "an answer fits");

struct annot {
    struct annot_callbacks callbacks; /* [init] */
    void *opaque;                     /* [init] */
    uint64_t features;                /* [init] */
    uv_mutex_t lock;
    struct annot_state state; /* [lock: lock] */
    _Atomic uint64_t unknown; /* [atomic] relaxed, a statistic */
};

static const char *const counter_names[ANNOT_COUNTERS] = {
#define COUNTER(name, text) #name,
#include "abi/counters.inc"
#undef COUNTER
};

static const char *const counter_texts[ANNOT_COUNTERS] = {
#define COUNTER(name, text) text,
#include "abi/counters.inc"
#undef COUNTER
};

static void annot_count_unknown(struct annot *annot)
{
    atomic_fetch_add_explicit(&annot->unknown, 1, memory_order_relaxed);
}

static uint64_t annot_read(void *opaque, unsigned cpu, uint64_t offset,
                           unsigned size)
{
    struct annot *annot = opaque;
    uint64_t value = 0;
    bool known = true;

    (void)size;
    uv_mutex_lock(&annot->lock);
    switch (offset) {
    case ANNOT_REG_ID:
        value = ANNOT_ID;
        break;
    case ANNOT_REG_VERSION:
        value = ANNOT_VERSION;
        break;
    case ANNOT_REG_COUNTERS_ADDR:
        value = annot->state.counters_addr;
        break;
    case ANNOT_REG_COUNTERS_CPUS:
        value = annot->state.counters_cpus;
        break;
    case ANNOT_REG_EXIT_STATUS:
        value = annot->state.exit_status;
        break;
    case ANNOT_REG_PANIC:
        value = annot->state.panic_code;
        break;
    case ANNOT_REG_MARK:
        value = annot->state.last_mark;
        break;
    case ANNOT_REG_FEATURES:
        value = annot->features;
        break;
    case ANNOT_REG_CHOOSE:
        value = cpu < BOARD_MAX_CPUS ? annot->state.answer[cpu] : 0;
        break;
    default:
        known = false;
        break;
    }
    uv_mutex_unlock(&annot->lock);
    if (!known) {
        annot_count_unknown(annot);
    }
    return value;
}

static void annot_write_counters(struct annot *annot, unsigned cpu,
                                 uint64_t offset, uint64_t value)
{
    uint64_t addr, cpus;

    uv_mutex_lock(&annot->lock);
    if (offset == ANNOT_REG_COUNTERS_ADDR) {
        annot->state.counters_addr = value;
        annot->state.has_addr = true;
    } else {
        annot->state.counters_cpus = value;
        annot->state.has_cpus = true;
    }
    addr = annot->state.counters_addr;
    cpus = annot->state.counters_cpus;
    uv_mutex_unlock(&annot->lock);
    if (annot->callbacks.counters != NULL) {
        annot->callbacks.counters(annot->opaque, cpu, addr, cpus);
    }
}

static void annot_latch(struct annot *annot, uint64_t *field, bool *has,
                        uint64_t value)
{
    uv_mutex_lock(&annot->lock);
    *field = value;
    if (has != NULL) {
        *has = true;
    }
    uv_mutex_unlock(&annot->lock);
}

static void annot_write_choose(struct annot *annot, unsigned cpu, uint64_t n)
{
    bool possible = n >= 1 && n <= ANNOT_CHOOSE_MAX && cpu < BOARD_MAX_CPUS;
    unsigned answer = 0;

    if (!possible) {
        annot_count_unknown(annot);
    } else if (annot->callbacks.choose != NULL) {
        answer = annot->callbacks.choose(annot->opaque, cpu, (unsigned)n);
    }
    if (cpu < BOARD_MAX_CPUS) {
        uv_mutex_lock(&annot->lock);
        annot->state.answer[cpu] = (uint16_t)(answer < n ? answer : 0);
        uv_mutex_unlock(&annot->lock);
    }
}

static void annot_write_range(struct annot *annot, unsigned cpu,
                              uint64_t offset, uint64_t value)
{
    if (cpu >= BOARD_MAX_CPUS) {
        return;
    }
    uv_mutex_lock(&annot->lock);
    if (offset == ANNOT_REG_OP_START) {
        annot->state.op_start[cpu] = value;
    } else {
        annot->state.op_end[cpu] = value;
    }
    uv_mutex_unlock(&annot->lock);
}

/* The range is this operation's, not the next one's as well. */
static void annot_write_begin(struct annot *annot, unsigned cpu, uint64_t kind)
{
    uint64_t start = 0, end = 0;

    if (cpu < BOARD_MAX_CPUS) {
        uv_mutex_lock(&annot->lock);
        start = annot->state.op_start[cpu];
        end = annot->state.op_end[cpu];
        annot->state.op_start[cpu] = annot->state.op_end[cpu] = 0;
        uv_mutex_unlock(&annot->lock);
    }
    if (annot->callbacks.op_begin != NULL) {
        annot->callbacks.op_begin(annot->opaque, cpu, kind,
                                  start & ~(uint64_t)ANNOT_PROMISE_MASK, end,
                                  (unsigned)(start & ANNOT_PROMISE_MASK));
    }
}

static void annot_write_frame(struct annot *annot, unsigned cpu,
                              uint64_t offset, uint64_t value)
{
    uint64_t order = value & ANNOT_ORDER_MASK;

    if (order > 18) { /* more than a GiB: nobody means that */
        annot_count_unknown(annot);
    } else if (annot->callbacks.frame != NULL) {
        annot->callbacks.frame(annot->opaque, cpu, (unsigned)offset,
                               value & ~(uint64_t)ANNOT_ORDER_MASK,
                               UINT64_C(1) << order);
    }
}

static void annot_write(void *opaque, unsigned cpu, uint64_t offset,
                        uint64_t value, unsigned size)
{
    struct annot *annot = opaque;
    void (*call)(void *, unsigned, uint64_t) = NULL;

    (void)size;
    switch (offset) {
    case ANNOT_REG_COUNTERS_ADDR:
    case ANNOT_REG_COUNTERS_CPUS:
        annot_write_counters(annot, cpu, offset, value);
        return;
    case ANNOT_REG_EXIT_STATUS:
        annot_latch(annot, &annot->state.exit_status, &annot->state.has_exit,
                    value);
        call = annot->callbacks.exit_status;
        break;
    case ANNOT_REG_PANIC:
        annot_latch(annot, &annot->state.panic_code, &annot->state.has_panic,
                    value);
        call = annot->callbacks.panic;
        break;
    case ANNOT_REG_MARK:
        annot_latch(annot, &annot->state.last_mark, NULL, value);
        call = annot->callbacks.mark;
        break;
    case ANNOT_REG_OP_BEGIN:
        annot_write_begin(annot, cpu, value);
        return;
    case ANNOT_REG_OP_START:
    case ANNOT_REG_OP_END_ADDR:
        annot_write_range(annot, cpu, offset, value);
        return;
    case ANNOT_REG_FRAME_FREE:
    case ANNOT_REG_FRAME_ALLOC:
    case ANNOT_REG_IO_BEGIN:
    case ANNOT_REG_IO_END:
    case ANNOT_REG_COPY_BEGIN:
    case ANNOT_REG_FRAME_CLEAN:
    case ANNOT_REG_FRAME_DROP:
        annot_write_frame(annot, cpu, offset, value);
        return;
    case ANNOT_REG_WALK_BEGIN:
    case ANNOT_REG_WALK_END:
    case ANNOT_REG_FLUSH_ASK:
    case ANNOT_REG_FLUSH_WAITED:
    case ANNOT_REG_FLUSH_SERVED:
    case ANNOT_REG_FLUSH_RESUME:
        if (annot->callbacks.promise != NULL) {
            annot->callbacks.promise(annot->opaque, cpu, (unsigned)offset,
                                     value);
        }
        return;
    case ANNOT_REG_OP_END:
        call = annot->callbacks.op_end;
        break;
    case ANNOT_REG_FINDING:
        call = annot->callbacks.finding;
        break;
    case ANNOT_REG_CHOOSE:
        annot_write_choose(annot, cpu, value);
        return;
    default:
        annot_count_unknown(annot);
        return;
    }
    if (call != NULL) {
        call(annot->opaque, cpu, value);
    }
}

static const struct device_ops annot_ops = {
    .read = annot_read,
    .write = annot_write,
};

struct annot *annot_new(const struct annot_callbacks *callbacks, void *opaque)
{
    struct annot *annot = g_new0(struct annot, 1);

    if (uv_mutex_init(&annot->lock) != 0) {
        g_free(annot);
        return NULL;
    }
    annot->callbacks = *callbacks;
    annot->opaque = opaque;
    return annot;
}

void annot_free(struct annot *annot)
{
    if (annot == NULL) {
        return;
    }
    uv_mutex_destroy(&annot->lock);
    g_free(annot);
}

void annot_set_features(struct annot *annot, uint64_t features)
{
    annot->features = features;
}

bool annot_attach(struct annot *annot, struct bus *bus, GError **error)
{
    return bus_attach(bus,
                      &(struct device_desc){
                          .name = "annot",
                          .base = BOARD_ANNOT_BASE,
                          .size = BOARD_ANNOT_SIZE,
                          .min_access = 8,
                          .max_access = 8,
                          .ops = &annot_ops,
                          .opaque = annot,
                      },
                      error);
}

/* The getters only lock; the device behind a const pointer does not change. */
static uv_mutex_t *annot_lock(const struct annot *annot)
{
    return (uv_mutex_t *)&annot->lock;
}

bool annot_counters_location(const struct annot *annot, uint64_t *out_addr,
                             uint64_t *out_cpus)
{
    bool known;

    uv_mutex_lock(annot_lock(annot));
    known = annot->state.has_addr && annot->state.has_cpus;
    if (known) {
        *out_addr = annot->state.counters_addr;
        *out_cpus = annot->state.counters_cpus;
    }
    uv_mutex_unlock(annot_lock(annot));
    return known;
}

bool annot_exit_status(const struct annot *annot, uint64_t *out_status)
{
    bool known;

    uv_mutex_lock(annot_lock(annot));
    known = annot->state.has_exit;
    if (known) {
        *out_status = annot->state.exit_status;
    }
    uv_mutex_unlock(annot_lock(annot));
    return known;
}

bool annot_panic_code(const struct annot *annot, uint64_t *out_code)
{
    bool known;

    uv_mutex_lock(annot_lock(annot));
    known = annot->state.has_panic;
    if (known) {
        *out_code = annot->state.panic_code;
    }
    uv_mutex_unlock(annot_lock(annot));
    return known;
}

size_t annot_state_size(const struct annot *annot)
{
    return sizeof(annot->state);
}

void annot_save(const struct annot *annot, void *to)
{
    memcpy(to, &annot->state, sizeof(annot->state));
}

void annot_restore(struct annot *annot, const void *from)
{
    memcpy(&annot->state, from, sizeof(annot->state));
}

uint64_t annot_unknown_accesses(const struct annot *annot)
{
    return atomic_load_explicit(&annot->unknown, memory_order_relaxed);
}

const char *annot_counter_name(unsigned index)
{
    return index < ANNOT_COUNTERS ? counter_names[index] : NULL;
}

const char *annot_counter_text(unsigned index)
{
    return index < ANNOT_COUNTERS ? counter_texts[index] : NULL;
}
