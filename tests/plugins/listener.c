/* SPDX-License-Identifier: MIT */
/*
 * Listens to everything and writes what it saw to the file named by out=.
 * refuse=TEXT makes install fail with that text. late=1 tries to register a
 * callback from within one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shootdown/plugin.h>

SHOOTDOWN_PLUGIN("listens to everything, for tests")

struct listener {
    const struct shootdown_host *host;
    FILE *out;
    bool late;
};

static void head(struct listener *l, const struct shootdown_where *w)
{
    fprintf(l->out, "%u/%" PRIx64 " ", w->vcpu, w->pc);
}

static void on_start(void *opaque, const struct shootdown_where *w,
                     const struct shootdown_vcpu *vcpu)
{
    struct listener *l = opaque;

    head(l, w);
    fprintf(l->out, "start %" PRIx64 "\n", vcpu->entry);
}

static void on_stop(void *opaque, const struct shootdown_where *w,
                    const struct shootdown_vcpu *vcpu)
{
    struct listener *l = opaque;

    (void)vcpu;
    head(l, w);
    fprintf(l->out, "stop\n");
}

static void entry_line(struct listener *l, const struct shootdown_where *w,
                       const char *what, const struct shootdown_tlb *e)
{
    head(l, w);
    fprintf(l->out, "%s %" PRIx64 " %" PRIx64 " %u %u %u %u\n", what, e->va,
            e->pa, e->asid, e->page_shift, e->perms, e->issuer);
}

static void on_fill(void *opaque, const struct shootdown_where *w,
                    const struct shootdown_tlb *e)
{
    struct listener *l = opaque;

    entry_line(l, w, "fill", e);
    if (l->late) {
        l->host->on_tlb_fill(l->host->self, on_fill, l);
    }
}

static void on_hit(void *opaque, const struct shootdown_where *w,
                   const struct shootdown_tlb *e)
{
    entry_line(opaque, w, "hit", e);
}

static void on_evict(void *opaque, const struct shootdown_where *w,
                     const struct shootdown_tlb *e)
{
    entry_line(opaque, w, "evict", e);
}

static void on_invalidate(void *opaque, const struct shootdown_where *w,
                          const struct shootdown_tlb *e)
{
    entry_line(opaque, w, "invalidate", e);
}

static void on_tlbi(void *opaque, const struct shootdown_where *w,
                    const struct shootdown_tlbi *t)
{
    struct listener *l = opaque;
    struct shootdown_symbol s = {.size = sizeof(s)};

    head(l, w);
    fprintf(l->out, "tlbi %s %" PRIx64 " %" PRIx64 " %u in %s\n", t->name,
            t->va, t->bytes, t->asid,
            l->host->symbol_at(l->host->self, w->pc, &s) ? s.name : "-");
}

static void on_barrier(void *opaque, const struct shootdown_where *w,
                       const struct shootdown_barrier *b)
{
    struct listener *l = opaque;

    head(l, w);
    fprintf(l->out, "dsb %s %" PRIu64 "\n", b->name, b->wait_ns);
}

static void on_fault(void *opaque, const struct shootdown_where *w,
                     const struct shootdown_fault *f)
{
    struct listener *l = opaque;

    head(l, w);
    fprintf(l->out, "fault %s %" PRIx64 " %u\n", f->name, f->far, f->from_el);
}

static void on_ipi(void *opaque, const struct shootdown_where *w,
                   const struct shootdown_ipi *i)
{
    struct listener *l = opaque;

    head(l, w);
    fprintf(l->out, "ipi %d %u %u\n", (int)i->step, i->intid, i->targets);
}

static void on_block(void *opaque, const struct shootdown_where *w,
                     const struct shootdown_block *b)
{
    struct listener *l = opaque;
    uint32_t word = 0;
    char text[64] = "?";
    bool ok =
        l->host->read_memory(l->host->self, w->vcpu, b->va, &word, 4) &&
        l->host->disassemble(l->host->self, b->va, word, text, sizeof(text));

    head(l, w);
    fprintf(l->out, "block %" PRIx64 " %u %u %s\n", b->va, b->bytes, b->insns,
            ok ? text : "-");
}

static void on_exit_fn(void *opaque)
{
    struct listener *l = opaque;

    fprintf(l->out, "exit\n");
    fclose(l->out);
    free(l);
}

int shootdown_plugin_install(const struct shootdown_host *host, int argc,
                             char **argv)
{
    struct listener *l = calloc(1, sizeof(*l));

    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0) {
            l->out = fopen(argv[i] + 4, "w");
        } else if (strncmp(argv[i], "refuse=", 7) == 0) {
            host->error(host->self, "because of %s", argv[i] + 7);
            free(l);
            return 1;
        } else if (strcmp(argv[i], "late=1") == 0) {
            l->late = true;
        }
    }
    if (!l->out || host->version != SHOOTDOWN_PLUGIN_API_VERSION) {
        free(l);
        return 1;
    }
    l->host = host;
    host->on_vcpu_start(host->self, on_start, l);
    host->on_vcpu_stop(host->self, on_stop, l);
    host->on_tlb_fill(host->self, on_fill, l);
    host->on_tlb_hit(host->self, on_hit, l);
    host->on_tlb_evict(host->self, on_evict, l);
    host->on_tlb_invalidate(host->self, on_invalidate, l);
    host->on_tlbi(host->self, on_tlbi, l);
    host->on_barrier(host->self, on_barrier, l);
    host->on_fault(host->self, on_fault, l);
    host->on_ipi(host->self, on_ipi, l);
    host->on_block(host->self, on_block, l);
    host->on_exit(host->self, on_exit_fn, l);
    return 0;
}
