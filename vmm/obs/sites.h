/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attribution, private to vmm/obs: counts of TLBI, DSB and IPIs by issuing PC
 * and inside operation windows. Each vCPU's part belongs to its thread.
 */
#ifndef OBS_SITES_H
#define OBS_SITES_H

#include "obs/events.h"

struct sites_shared;
struct symbols;

struct sites_shared *sites_shared_new(struct events *ev);
void sites_shared_free(struct sites_shared *shared, struct events *ev);
void sites_shared_set_symbols(struct sites_shared *shared,
                              const struct symbols *symbols);

/* Of an event stream; NULL where nobody asked for attribution. */
struct sites_shared *events_sites(const struct events *ev);

/* The class of a function's name; NULL: no symbol. */
enum site_class site_class_of(const char *function);

#endif
