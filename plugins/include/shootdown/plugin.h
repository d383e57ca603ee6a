/* SPDX-License-Identifier: MIT */
/*
 * shootdown/plugin.h: everything a plugin sees of shootdown.
 *
 * A plugin is a shared object that exports
 *
 *     SHOOTDOWN_PLUGIN("one line about it")
 *     int shootdown_plugin_install(const struct shootdown_host *host,
 *                                  int argc, char **argv);
 *
 * install registers callbacks through the host and returns 0. argv holds the
 * "key=value" words that followed the file name on the command line. Any
 * other result refuses the run; say why with host->error() first.
 *
 * Threads: install and the at-exit callback run alone. Every other callback
 * runs on the thread of the vCPU it names, several at once for different
 * vCPUs and never two at once for the same one. Data kept per vCPU needs no
 * lock.
 *
 * Lifetimes: the host stays valid until the at-exit callback returned. Every
 * other pointer that a callback gets is valid only until it returns.
 *
 * Plugins observe. Nothing here changes the machine.
 */
#ifndef SHOOTDOWN_PLUGIN_H
#define SHOOTDOWN_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Raised whenever a plugin built before could misread what it is given. The
 * two numbers must be equal; the loader names both where they are not.
 * Structs only ever grow at their end within one version, which is why each
 * begins with its size.
 */
#define SHOOTDOWN_PLUGIN_API_VERSION 1

#if defined(__GNUC__)
#define SHOOTDOWN_EXPORT __attribute__((visibility("default")))
#else
#define SHOOTDOWN_EXPORT
#endif

#define SHOOTDOWN_PLUGIN(description)                                          \
    SHOOTDOWN_EXPORT extern const uint32_t shootdown_plugin_version;           \
    SHOOTDOWN_EXPORT extern const char *const shootdown_plugin_description;    \
    const uint32_t shootdown_plugin_version = SHOOTDOWN_PLUGIN_API_VERSION;    \
    const char *const shootdown_plugin_description = description;

/* Common head of what the callbacks get. */
struct shootdown_where {
    size_t size;   /* of this struct */
    uint32_t vcpu; /* index, 0 .. host->vcpus - 1 */
    uint64_t seq;  /* order among all events that anyone listens to */
    uint64_t pc;   /* of the instruction that caused it; 0 if none did */
};

/* A vCPU was started (reset or CPU_ON), or stopped (CPU_OFF, end of run). */
struct shootdown_vcpu {
    size_t size;
    uint64_t entry; /* start: the first pc */
};

/*
 * One translation of the modelled TLB. `fill` put it there after a walk, a
 * `hit` found it there after the engine's own micro-TLB missed, `evict`
 * replaced it, `invalidate` removed it because a TLBI named it.
 */
struct shootdown_tlb {
    size_t size;
    uint64_t va;        /* of the page */
    uint64_t pa;        /* of the page */
    uint16_t asid;      /* meaningless for a global page */
    uint8_t page_shift; /* 12, 21 or 30 */
    uint8_t perms;      /* fill, hit: PERM_R1 ... as below; else 0 */
    uint32_t issuer;    /* invalidate: the vCPU whose TLBI it was */
};

#define SHOOTDOWN_PERM_R1 0x01 /* EL1 may read */
#define SHOOTDOWN_PERM_W1 0x02
#define SHOOTDOWN_PERM_X1 0x04
#define SHOOTDOWN_PERM_R0 0x08 /* EL0 may read */
#define SHOOTDOWN_PERM_W0 0x10
#define SHOOTDOWN_PERM_X0 0x20

/* A TLBI instruction was executed. */
struct shootdown_tlbi {
    size_t size;
    const char *name; /* "VALE1IS"; a constant, may be kept */
    uint64_t operand; /* Xt */
    uint64_t va;      /* 0 where the operation names none */
    uint64_t bytes;   /* what it names from va on; 0: not by address */
    uint16_t asid;
};

/* A DSB has completed: whatever it had to wait for is done. */
struct shootdown_barrier {
    size_t size;
    const char *name; /* "ISH", "ISHST", "SY"...; may be kept */
    uint64_t wait_ns; /* host time between its begin and its end */
};

/* A synchronous exception was taken to EL1. */
struct shootdown_fault {
    size_t size;
    const char *name; /* "translation", "permission", "svc"...; may be kept */
    uint64_t esr;
    uint64_t far;
    uint32_t from_el;
};

/* SEND: a write of ICC_SGI1R_EL1; TAKE: the acknowledge; ACK: the EOI. */
enum shootdown_ipi_step {
    SHOOTDOWN_IPI_SEND,
    SHOOTDOWN_IPI_TAKE,
    SHOOTDOWN_IPI_ACK
};

struct shootdown_ipi {
    size_t size;
    enum shootdown_ipi_step step;
    uint32_t intid;
    uint32_t targets; /* SEND: how many vCPUs it reached */
};

/* A basic block was entered and will be executed unless it faults. */
struct shootdown_block {
    size_t size;
    uint64_t va;
    uint32_t bytes;
    uint32_t insns;
};

typedef void (*shootdown_vcpu_fn)(void *opaque,
                                  const struct shootdown_where *where,
                                  const struct shootdown_vcpu *vcpu);
typedef void (*shootdown_tlb_fn)(void *opaque,
                                 const struct shootdown_where *where,
                                 const struct shootdown_tlb *entry);
typedef void (*shootdown_tlbi_fn)(void *opaque,
                                  const struct shootdown_where *where,
                                  const struct shootdown_tlbi *tlbi);
typedef void (*shootdown_barrier_fn)(void *opaque,
                                     const struct shootdown_where *where,
                                     const struct shootdown_barrier *barrier);
typedef void (*shootdown_fault_fn)(void *opaque,
                                   const struct shootdown_where *where,
                                   const struct shootdown_fault *fault);
typedef void (*shootdown_ipi_fn)(void *opaque,
                                 const struct shootdown_where *where,
                                 const struct shootdown_ipi *ipi);
typedef void (*shootdown_block_fn)(void *opaque,
                                   const struct shootdown_where *where,
                                   const struct shootdown_block *block);
typedef void (*shootdown_exit_fn)(void *opaque);

/* A symbol of the guest's kernel. */
struct shootdown_symbol {
    size_t size;      /* set by the caller: sizeof(struct shootdown_symbol) */
    const char *name; /* stays valid as long as the host does */
    uint64_t start;
    uint64_t length;
};

struct shootdown_host {
    size_t size;      /* of this struct, in the running shootdown */
    uint32_t version; /* SHOOTDOWN_PLUGIN_API_VERSION of the host */
    uint32_t vcpus;
    void *self; /* first argument of every function below */

    /* --- in install only: what the plugin listens to --- */

    void (*on_vcpu_start)(void *self, shootdown_vcpu_fn fn, void *opaque);
    void (*on_vcpu_stop)(void *self, shootdown_vcpu_fn fn, void *opaque);
    void (*on_tlb_fill)(void *self, shootdown_tlb_fn fn, void *opaque);
    void (*on_tlb_hit)(void *self, shootdown_tlb_fn fn, void *opaque);
    void (*on_tlb_evict)(void *self, shootdown_tlb_fn fn, void *opaque);
    void (*on_tlb_invalidate)(void *self, shootdown_tlb_fn fn, void *opaque);
    void (*on_tlbi)(void *self, shootdown_tlbi_fn fn, void *opaque);
    void (*on_barrier)(void *self, shootdown_barrier_fn fn, void *opaque);
    void (*on_fault)(void *self, shootdown_fault_fn fn, void *opaque);
    void (*on_ipi)(void *self, shootdown_ipi_fn fn, void *opaque);
    void (*on_block)(void *self, shootdown_block_fn fn, void *opaque);
    /* After the last vCPU stopped; the place to print and to free. */
    void (*on_exit)(void *self, shootdown_exit_fn fn, void *opaque);
    /* Why install is about to fail. printf format. */
    void (*error)(void *self, const char *format, ...);

    /* --- in install and in any callback --- */

    /* The symbol that holds pc, or the one of that name; false: none. */
    bool (*symbol_at)(void *self, uint64_t pc, struct shootdown_symbol *out);
    bool (*symbol_named)(void *self, const char *name,
                         struct shootdown_symbol *out);
    /* Text for the user (standard error, whole calls stay together). */
    void (*output)(void *self, const char *format, ...);

    /* --- in a callback that names a vCPU, for that vCPU --- */

    /* Guest virtual memory, without effect on the guest; false: unmapped. */
    bool (*read_memory)(void *self, uint32_t vcpu, uint64_t va, void *buffer,
                        size_t length);
    /* "tlbi vale1is, x0"; false: not an instruction. */
    bool (*disassemble)(void *self, uint64_t pc, uint32_t word, char *buffer,
                        size_t size);
};

SHOOTDOWN_EXPORT int shootdown_plugin_install(const struct shootdown_host *host,
                                              int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
