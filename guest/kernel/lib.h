/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The freestanding library: memory, strings, and a doubly linked list. */
#ifndef KERNEL_LIB_H
#define KERNEL_LIB_H

#include <stdarg.h>

#include "kernel/types.h"

void *memcpy(void *dst, const void *src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t max);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
/* Copies what fits, always terminates; returns strlen(src). size > 0. */
size_t strlcpy(char *dst, const char *src, size_t size);
/* Whole string as a number, decimal or 0x; false if it is not one. */
bool str_to_u64(const char *s, uint64_t *out_value);
/* As Linux's memparse: a number, perhaps with K, M, G or T; *at behind it. */
bool str_to_size(const char **at, uint64_t *out);

/*
 * Conversions: %d %i %u %o %x %X %c %s %p %% with l, ll, z, width, precision
 * for %s, and the flags 0 and -. Return the length the whole text would have.
 */
int vsnprintf(char *buf, size_t size, const char *fmt, va_list args);
int snprintf(char *buf, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Circular list; an empty head points at itself. */
struct list {
    struct list *next, *prev;
};

#define LIST_INIT(name)                                                        \
    {                                                                          \
        &(name), &(name)                                                       \
    }

static inline void list_init(struct list *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_insert_after(struct list *at, struct list *node)
{
    node->next = at->next;
    node->prev = at;
    at->next->prev = node;
    at->next = node;
}

/* At the front of the list. */
static inline void list_push(struct list *head, struct list *node)
{
    list_insert_after(head, node);
}

/* At the end of the list. */
static inline void list_append(struct list *head, struct list *node)
{
    list_insert_after(head->prev, node);
}

/* Leaves the node self-linked, so that list_empty(node) tells "not listed". */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_first(head, type, member) list_entry((head)->next, type, member)
#define list_last(head, type, member) list_entry((head)->prev, type, member)
#define list_for_each(pos, head)                                               \
    for ((pos) = (head)->next; (pos) != (head); (pos) = (pos)->next)
/* Safe against removal of pos. */
#define list_for_each_safe(pos, tmp, head)                                     \
    for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head);           \
         (pos) = (tmp), (tmp) = (pos)->next)

#endif
