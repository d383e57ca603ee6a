/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small helpers over yajl_gen, private to vmm/obs. A generator that only ever
 * gets well-formed calls cannot fail, except for invalid UTF-8, which
 * json_string() replaces.
 */
#ifndef OBS_JSON_H
#define OBS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <yajl/yajl_gen.h>

struct vm_config;

void json_string(yajl_gen g, const char *text); /* NULL becomes null */
void json_key(yajl_gen g, const char *key);
void json_u64(yajl_gen g, const char *key, uint64_t value);
void json_text(yajl_gen g, const char *key, const char *value);
void json_bool(yajl_gen g, const char *key, bool value);
/* A string: numbers above 2^53 do not survive most JSON readers. */
void json_hex(yajl_gen g, const char *key, uint64_t value);
/* The member "config" of a header or of the statistics. */
void json_config(yajl_gen g, const struct vm_config *config);

#endif
