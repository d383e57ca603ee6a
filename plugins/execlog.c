/* SPDX-License-Identifier: MIT */
/*
 * execlog: a line per executed instruction, disassembled by Capstone:
 *
 *     vCPU address symbol+offset: instruction
 *
 * Options: symbol=NAME (may be repeated) and range=LOW-HIGH (hexadecimal,
 * HIGH excluded, may be repeated) choose what is shown, without either
 * everything is; limit=N stops after N instructions of each vCPU.
 *
 * A block is written as a whole when it is entered, so the instructions after
 * one that faults are shown although they do not run.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <capstone/capstone.h>
#include <shootdown/plugin.h>

SHOOTDOWN_PLUGIN("instructions as text [symbol=NAME,range=LOW-HIGH,limit=N]")

#define RANGES_MAX 32
#define BLOCK_INSNS_MAX 1024
#define LINE_MAX_BYTES 160

struct range {
    uint64_t low, high; /* high excluded */
};

struct log_vcpu {
    csh capstone;
    cs_insn *insn;
    uint64_t shown;
    char text[BLOCK_INSNS_MAX * LINE_MAX_BYTES];
    uint32_t words[BLOCK_INSNS_MAX];
};

struct execlog {
    const struct shootdown_host *host;
    struct log_vcpu **vcpus; /* made when a vCPU first shows something */
    struct range ranges[RANGES_MAX];
    size_t n_ranges;
    uint64_t limit; /* 0: none */
};

static bool is_shown(const struct execlog *log, uint64_t pc)
{
    for (size_t i = 0; i < log->n_ranges; i++) {
        if (pc >= log->ranges[i].low && pc < log->ranges[i].high) {
            return true;
        }
    }
    return log->n_ranges == 0;
}

static bool overlaps(const struct execlog *log, uint64_t low, uint64_t high)
{
    for (size_t i = 0; i < log->n_ranges; i++) {
        if (low < log->ranges[i].high && log->ranges[i].low < high) {
            return true;
        }
    }
    return log->n_ranges == 0;
}

/* Each vCPU has a handle of its own: Capstone's are not thread-safe. */
static struct log_vcpu *log_vcpu_new(void)
{
    struct log_vcpu *v = calloc(1, sizeof(*v));

    if (!v || cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &v->capstone) != CS_ERR_OK) {
        free(v);
        return NULL;
    }
    v->insn = cs_malloc(v->capstone);
    if (!v->insn) {
        cs_close(&v->capstone);
        free(v);
        return NULL;
    }
    return v;
}

static void log_vcpu_free(struct log_vcpu *v)
{
    if (v) {
        cs_free(v->insn, 1);
        cs_close(&v->capstone);
        free(v);
    }
}

/* Adds one line to v->text at `at`; returns the new end. */
static size_t log_insn(const struct execlog *log, struct log_vcpu *v,
                       uint32_t vcpu, uint64_t pc, uint32_t word, size_t at)
{
    struct shootdown_symbol symbol = {.size = sizeof(symbol)};
    const uint8_t code[4] = {(uint8_t)word, (uint8_t)(word >> 8),
                             (uint8_t)(word >> 16), (uint8_t)(word >> 24)};
    const uint8_t *cursor = code;
    size_t left = sizeof(code);
    uint64_t address = pc;
    char place[64] = "?", insn[80];
    int n;

    if (log->host->symbol_at(log->host->self, pc, &symbol)) {
        snprintf(place, sizeof(place), "%.48s+0x%" PRIx64, symbol.name,
                 pc - symbol.start);
    }
    if (cs_disasm_iter(v->capstone, &cursor, &left, &address, v->insn)) {
        snprintf(insn, sizeof(insn), "%s%s%.40s", v->insn->mnemonic,
                 v->insn->op_str[0] ? " " : "", v->insn->op_str);
    } else {
        snprintf(insn, sizeof(insn), ".inst 0x%08" PRIx32, word);
    }
    n = snprintf(v->text + at, LINE_MAX_BYTES, "%3u %016" PRIx64 " %s: %s\n",
                 vcpu, pc, place, insn);
    if (n >= LINE_MAX_BYTES) {
        n = LINE_MAX_BYTES - 1;
    }
    return at + (size_t)(n > 0 ? n : 0);
}

static void log_block(void *opaque, const struct shootdown_where *where,
                      const struct shootdown_block *block)
{
    struct execlog *log = opaque;
    struct log_vcpu **v = &log->vcpus[where->vcpu];
    size_t n = block->bytes / 4, end = 0;

    if (!overlaps(log, block->va, block->va + block->bytes)) {
        return;
    }
    if (!*v && !(*v = log_vcpu_new())) {
        return;
    }
    if (n > BLOCK_INSNS_MAX) {
        n = BLOCK_INSNS_MAX;
    }
    if (!log->host->read_memory(log->host->self, where->vcpu, block->va,
                                (*v)->words, n * 4)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t pc = block->va + i * 4;

        if (!is_shown(log, pc)) {
            continue;
        }
        if (log->limit && (*v)->shown >= log->limit) {
            break;
        }
        (*v)->shown++;
        end = log_insn(log, *v, where->vcpu, pc, (*v)->words[i], end);
    }
    if (end > 0) {
        log->host->output(log->host->self, "%s", (*v)->text);
    }
}

static void execlog_free(struct execlog *log)
{
    for (uint32_t v = 0; v < log->host->vcpus; v++) {
        log_vcpu_free(log->vcpus[v]);
    }
    free(log->vcpus);
    free(log);
}

static void log_exit(void *opaque)
{
    execlog_free(opaque);
}

/* --- options --- */

static bool option_symbol(struct execlog *log, const char *name)
{
    struct shootdown_symbol symbol = {.size = sizeof(symbol)};

    if (!log->host->symbol_named(log->host->self, name, &symbol)) {
        log->host->error(log->host->self,
                         "the kernel has no symbol '%s' (symbol=)", name);
        return false;
    }
    log->ranges[log->n_ranges++] =
        (struct range){symbol.start, symbol.start + symbol.length};
    return true;
}

static bool option_range(struct execlog *log, const char *text)
{
    char *dash = NULL, *end = NULL;
    struct range range;

    errno = 0;
    range.low = strtoull(text, &dash, 16);
    range.high = *dash == '-' ? strtoull(dash + 1, &end, 16) : 0;
    if (errno || !end || *end || range.low >= range.high) {
        log->host->error(log->host->self,
                         "range=%s is no range: write range=LOW-HIGH in "
                         "hexadecimal, HIGH above LOW",
                         text);
        return false;
    }
    log->ranges[log->n_ranges++] = range;
    return true;
}

static bool option_limit(struct execlog *log, const char *text)
{
    char *end = NULL;

    errno = 0;
    log->limit = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-') {
        log->host->error(log->host->self, "limit=%s is no number", text);
        return false;
    }
    return true;
}

static bool parse_option(struct execlog *log, const char *word)
{
    bool has_room = log->n_ranges < RANGES_MAX;

    if (strncmp(word, "symbol=", 7) == 0 && has_room) {
        return option_symbol(log, word + 7);
    }
    if (strncmp(word, "range=", 6) == 0 && has_room) {
        return option_range(log, word + 6);
    }
    if (strncmp(word, "limit=", 6) == 0) {
        return option_limit(log, word + 6);
    }
    if (!has_room) {
        log->host->error(log->host->self, "more than %d filters", RANGES_MAX);
    } else {
        log->host->error(log->host->self,
                         "'%s' is no option of execlog: it knows symbol=NAME, "
                         "range=LOW-HIGH and limit=N",
                         word);
    }
    return false;
}

int shootdown_plugin_install(const struct shootdown_host *host, int argc,
                             char **argv)
{
    struct execlog *log = calloc(1, sizeof(*log));

    if (!log || !(log->vcpus = calloc(host->vcpus, sizeof(*log->vcpus)))) {
        host->error(host->self, "no memory");
        free(log);
        return 1;
    }
    log->host = host;
    for (int i = 0; i < argc; i++) {
        if (!parse_option(log, argv[i])) {
            execlog_free(log);
            return 1;
        }
    }
    host->on_block(host->self, log_block, log);
    host->on_exit(host->self, log_exit, log);
    return 0;
}
