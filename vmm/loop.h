/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event loop: console, timers, signals. It runs on the thread that called
 * vm_run(); other threads reach it by uv_async_send() only.
 */
#ifndef VMM_LOOP_H
#define VMM_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

struct loop;
struct vm;

struct loop *loop_new(struct vm *vm, GError **error);
void loop_free(struct loop *loop);

/* Runs until loop_stop(). The loop's thread. */
void loop_run(struct loop *loop);
/* Writes out what the guest printed. The loop's thread, or after the run. */
void loop_flush_console(struct loop *loop);

/* --- any thread --- */

/* The guest's last line has no end yet. */
bool loop_console_midline(struct loop *loop);

void loop_stop(struct loop *loop);
/* A character from the guest's console. */
void loop_console_put(struct loop *loop, uint8_t byte);
/* There is room for console input again. */
void loop_console_room(struct loop *loop);
/* A timer register of this CPU was written. */
void loop_timer_changed(struct loop *loop, unsigned cpu);

#endif
