/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between the event stream and the public plugin header: each callback of a
 * plugin becomes one subscription whose function turns a struct event into
 * the public struct. Nobody listens: nothing is subscribed, nothing costs.
 *
 * Bridges run on the vCPUs' threads and share nothing that changes.
 */
#include <stdarg.h>
#include <stdio.h>

#include "obs/plugin_priv.h"
#include "obs/symbols.h"

static struct shootdown_where where_of(const struct event *e)
{
    return (struct shootdown_where){
        .size = sizeof(struct shootdown_where),
        .vcpu = e->vcpu,
        .seq = e->seq,
        .pc = e->pc,
    };
}

/* --- from event to callback --- */

static void bridge_vcpu(void *opaque, const struct event *e)
{
    const struct plugin_bridge *b = opaque;
    struct shootdown_where where = where_of(e);
    struct shootdown_vcpu vcpu = {
        .size = sizeof(vcpu),
        .entry = e->kind == EVENT_vcpu_start ? e->a[0] : 0,
    };

    ((shootdown_vcpu_fn)b->fn)(b->opaque, &where, &vcpu);
}

static void bridge_tlb(void *opaque, const struct event *e)
{
    const struct plugin_bridge *b = opaque;
    struct shootdown_where where = where_of(e);
    bool has_perms = e->kind == EVENT_fill || e->kind == EVENT_hit;
    /* A hit names the address that missed; plugins get the entry's page. */
    uint64_t page = ~((UINT64_C(1) << (e->a[3] & 63)) - 1);
    struct shootdown_tlb entry = {
        .size = sizeof(entry),
        .va = e->a[0] & page,
        .asid = (uint16_t)e->a[1],
        .pa = e->a[2] & page,
        .page_shift = (uint8_t)e->a[3],
        .perms = has_perms ? (uint8_t)e->a[4] : 0,
        .issuer = e->kind == EVENT_invalidate ? (uint32_t)e->a[4] : e->vcpu,
    };

    ((shootdown_tlb_fn)b->fn)(b->opaque, &where, &entry);
}

static void bridge_tlbi(void *opaque, const struct event *e)
{
    const struct plugin_bridge *b = opaque;
    struct shootdown_where where = where_of(e);
    const char *name = tlbi_encoding_name((unsigned)e->a[0]);
    struct shootdown_tlbi tlbi = {
        .size = sizeof(tlbi),
        .name = name ? name : "other",
        .operand = e->a[1],
        .va = e->a[2],
        .asid = (uint16_t)e->a[3],
        .bytes = e->a[4],
    };

    ((shootdown_tlbi_fn)b->fn)(b->opaque, &where, &tlbi);
}

static void bridge_barrier(void *opaque, const struct event *e)
{
    const struct plugin_bridge *b = opaque;
    struct shootdown_where where = where_of(e);
    struct shootdown_barrier barrier = {
        .size = sizeof(barrier),
        .name = barrier_name((unsigned)e->a[0]),
        .wait_ns = e->a[1],
    };

    ((shootdown_barrier_fn)b->fn)(b->opaque, &where, &barrier);
}

static void bridge_fault(void *opaque, const struct event *e)
{
    const struct plugin_bridge *b = opaque;
    struct shootdown_where where = where_of(e);
    struct shootdown_fault fault = {
        .size = sizeof(fault),
        .name = fault_class_name((enum fault_class)e->a[0]),
        .esr = e->a[1],
        .far = e->a[2],
        .from_el = (uint32_t)e->a[3],
    };

    ((shootdown_fault_fn)b->fn)(b->opaque, &where, &fault);
}

static void bridge_ipi(void *opaque, const struct event *e)
{
    const struct plugin_bridge *b = opaque;
    struct shootdown_where where = where_of(e);
    struct shootdown_ipi ipi = {.size = sizeof(ipi)};

    if (e->kind == EVENT_ipi_send) {
        ipi.step = SHOOTDOWN_IPI_SEND;
        ipi.intid = (uint32_t)e->a[1];
        ipi.targets = (uint32_t)e->a[2];
    } else {
        ipi.step =
            e->kind == EVENT_ipi_take ? SHOOTDOWN_IPI_TAKE : SHOOTDOWN_IPI_ACK;
        ipi.intid = (uint32_t)e->a[0];
    }
    ((shootdown_ipi_fn)b->fn)(b->opaque, &where, &ipi);
}

static void bridge_block(void *opaque, const struct event *e)
{
    const struct plugin_bridge *b = opaque;
    struct shootdown_where where = where_of(e);
    struct shootdown_block block = {
        .size = sizeof(block),
        .va = e->a[0],
        .bytes = (uint32_t)e->a[1],
        .insns = (uint32_t)e->a[2],
    };

    ((shootdown_block_fn)b->fn)(b->opaque, &where, &block);
}

/* --- registration --- */

static void host_listen(void *self, uint64_t kinds, event_fn bridge,
                        void (*fn)(void), void *opaque)
{
    struct plugin *p = self;
    struct plugin_bridge *b;

    if (!p->installing) {
        /* The subscriber lists are fixed once vCPUs run. */
        if (g_atomic_int_compare_and_exchange(&p->late, 0, 1)) {
            fprintf(stderr,
                    "shootdown: plugin '%s' registers a callback outside of "
                    "its install function; ignored\n",
                    p->path);
        }
        return;
    }
    b = g_new0(struct plugin_bridge, 1);
    b->plugin = p;
    b->fn = fn;
    b->opaque = opaque;
    g_ptr_array_add(p->bridges, b);
    events_subscribe(p->all->ev, kinds, bridge, b);
}

#define LISTENER(name, type, bridge, kinds)                                    \
    static void host_on_##name(void *self, type fn, void *opaque)              \
    {                                                                          \
        host_listen(self, (kinds), (bridge), (void (*)(void))fn, opaque);      \
    }

LISTENER(vcpu_start, shootdown_vcpu_fn, bridge_vcpu,
         EVENT_BIT(EVENT_vcpu_start))
LISTENER(vcpu_stop, shootdown_vcpu_fn, bridge_vcpu, EVENT_BIT(EVENT_vcpu_stop))
LISTENER(tlb_fill, shootdown_tlb_fn, bridge_tlb, EVENT_BIT(EVENT_fill))
LISTENER(tlb_hit, shootdown_tlb_fn, bridge_tlb, EVENT_BIT(EVENT_hit))
LISTENER(tlb_evict, shootdown_tlb_fn, bridge_tlb, EVENT_BIT(EVENT_evict))
LISTENER(tlb_invalidate, shootdown_tlb_fn, bridge_tlb,
         EVENT_BIT(EVENT_invalidate))
LISTENER(tlbi, shootdown_tlbi_fn, bridge_tlbi, EVENT_BIT(EVENT_tlbi))
LISTENER(barrier, shootdown_barrier_fn, bridge_barrier,
         EVENT_BIT(EVENT_dsb_done))
LISTENER(fault, shootdown_fault_fn, bridge_fault, EVENT_BIT(EVENT_fault))
LISTENER(ipi, shootdown_ipi_fn, bridge_ipi,
         EVENT_BIT(EVENT_ipi_send) | EVENT_BIT(EVENT_ipi_take) |
             EVENT_BIT(EVENT_ipi_ack))
LISTENER(block, shootdown_block_fn, bridge_block, EVENT_BIT(EVENT_block))

static void host_on_exit(void *self, shootdown_exit_fn fn, void *opaque)
{
    struct plugin *p = self;
    struct plugin_exit e = {fn, opaque};

    if (p->installing) {
        g_array_append_val(p->exits, e);
    } else {
        host_listen(self, 0, NULL, NULL, NULL); /* says that it is too late */
    }
}

static void host_error(void *self, const char *format, ...)
{
    struct plugin *p = self;
    va_list args;

    va_start(args, format);
    g_free(p->error);
    p->error = g_strdup_vprintf(format, args);
    va_end(args);
}

/* --- services --- */

static bool host_symbol(bool found, const struct symbol *symbol,
                        struct shootdown_symbol *out)
{
    if (!found || out->size < sizeof(*out)) {
        return false;
    }
    out->name = symbol->name;
    out->start = symbol->start;
    out->length = symbol->size;
    return true;
}

static bool host_symbol_at(void *self, uint64_t pc,
                           struct shootdown_symbol *out)
{
    const struct plugin *p = self;
    struct symbol symbol;

    return host_symbol(symbols_find(p->all->symbols, pc, &symbol), &symbol,
                       out);
}

static bool host_symbol_named(void *self, const char *name,
                              struct shootdown_symbol *out)
{
    const struct plugin *p = self;
    struct symbol symbol;

    return host_symbol(symbols_by_name(p->all->symbols, name, &symbol), &symbol,
                       out);
}

static void host_output(void *self, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    (void)self; /* one output for all so far */
    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    /* One call, so that stdio's own lock keeps the text together. */
    (void)fputs(text, stderr); /* nowhere to report it */
}

static bool host_read_memory(void *self, uint32_t vcpu, uint64_t va,
                             void *buffer, size_t length)
{
    const struct plugin *p = self;
    const struct plugin_services *s = &p->all->services;

    return s->read_memory && vcpu < p->all->ev->vcpus &&
           s->read_memory(s->opaque, vcpu, va, buffer, length);
}

static bool host_disassemble(void *self, uint64_t pc, uint32_t word,
                             char *buffer, size_t size)
{
    const struct plugin *p = self;
    const struct plugin_services *s = &p->all->services;

    return s->disassemble && size > 0 &&
           s->disassemble(s->opaque, pc, word, buffer, size);
}

void plugin_bridge_init(struct plugin *plugin)
{
    plugin->host = (struct shootdown_host){
        .size = sizeof(struct shootdown_host),
        .version = SHOOTDOWN_PLUGIN_API_VERSION,
        .vcpus = plugin->all->ev->vcpus,
        .self = plugin,
        .on_vcpu_start = host_on_vcpu_start,
        .on_vcpu_stop = host_on_vcpu_stop,
        .on_tlb_fill = host_on_tlb_fill,
        .on_tlb_hit = host_on_tlb_hit,
        .on_tlb_evict = host_on_tlb_evict,
        .on_tlb_invalidate = host_on_tlb_invalidate,
        .on_tlbi = host_on_tlbi,
        .on_barrier = host_on_barrier,
        .on_fault = host_on_fault,
        .on_ipi = host_on_ipi,
        .on_block = host_on_block,
        .on_exit = host_on_exit,
        .error = host_error,
        .symbol_at = host_symbol_at,
        .symbol_named = host_symbol_named,
        .output = host_output,
        .read_memory = host_read_memory,
        .disassemble = host_disassemble,
    };
}
