/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event loop; see loop.h. Deadlines of the guest's timers go through a
 * timerfd, since libuv's own timers count milliseconds.
 */
#include "loop.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

#include "deadlines.h"
#include "error.h"
#include "vm_priv.h"

/* Console bytes that may wait for the loop before the guest writes itself. */
#define CONSOLE_WAITING_MAX (64u << 10)
#define INPUT_CHUNK 256u

struct loop {
    struct vm *vm; /* [init] */
    uv_loop_t uv;
    uv_async_t wake;
    uv_signal_t sigint, sigterm;
    uv_timer_t timeout;
    uv_poll_t timer_poll;
    int timer_fd;
    bool timer_poll_open;

    _Atomic bool stop;
    _Atomic bool console_dirty;
    _Atomic bool timers_dirty;
    struct deadlines *deadlines;

    uv_mutex_t console_lock;
    GByteArray *console;  /* [lock: console_lock] not yet written */
    uint8_t console_last; /* [lock: console_lock] byte; 0: none yet */

    union {
        uv_stream_t stream;
        uv_tty_t tty;
        uv_pipe_t pipe;
    } input; /* [loop] */
    bool input_open;
    char input_buffer[INPUT_CHUNK];     /* [loop] libuv reads into it */
    uint8_t input_waiting[INPUT_CHUNK]; /* [loop] not taken by the UART yet */
    size_t input_count;
};

static void write_all(const uint8_t *bytes, size_t count)
{
    while (count) {
        ssize_t n = write(STDOUT_FILENO, bytes, count);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            g_usleep(1000);
            continue;
        }
        if (n <= 0) {
            return; /* nobody reads the console: the guest goes on */
        }
        bytes += n;
        count -= (size_t)n;
    }
}

void loop_flush_console(struct loop *loop)
{
    GByteArray *out = NULL;

    uv_mutex_lock(&loop->console_lock);
    if (loop->console->len) {
        out = loop->console;
        loop->console = g_byte_array_new();
    }
    uv_mutex_unlock(&loop->console_lock);
    if (out) {
        write_all(out->data, out->len);
        g_byte_array_unref(out);
    }
}

bool loop_console_midline(struct loop *loop)
{
    uint8_t last;

    uv_mutex_lock(&loop->console_lock);
    last = loop->console_last;
    uv_mutex_unlock(&loop->console_lock);
    return last != 0 && last != '\n';
}

void loop_console_put(struct loop *loop, uint8_t byte)
{
    bool full;

    if (loop->vm->config->quiet) {
        return;
    }
    uv_mutex_lock(&loop->console_lock);
    g_byte_array_append(loop->console, &byte, 1);
    loop->console_last = byte;
    full = loop->console->len >= CONSOLE_WAITING_MAX;
    uv_mutex_unlock(&loop->console_lock);
    if (full) {
        loop_flush_console(loop);
    } else if (!atomic_exchange(&loop->console_dirty, true)) {
        uv_async_send(&loop->wake);
    }
}

/* Arms the timerfd for the earliest deadline. The loop's thread. */
static void arm_timer(struct loop *loop)
{
    struct itimerspec spec = {0};
    uint64_t earliest = deadlines_earliest(loop->deadlines);

    if (earliest < UINT64_MAX / 16) {
        uint64_t ns = vm_ticks_to_ns(loop->vm, earliest);

        spec.it_value.tv_sec = (time_t)(ns / 1000000000);
        spec.it_value.tv_nsec = (long)(ns % 1000000000) + 1;
        if (spec.it_value.tv_nsec > 999999999) {
            spec.it_value.tv_nsec = 999999999;
        }
    }
    (void)timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void on_timer_fd(uv_poll_t *poll, int status, int events)
{
    struct loop *loop = poll->data;
    uint64_t now = vm_now_ticks(loop->vm);
    uint64_t expirations;

    (void)status;
    (void)events;
    if (read(loop->timer_fd, &expirations, sizeof(expirations)) < 0) {
        return; /* disarmed or set again in between */
    }
    for (unsigned i = 0; i < loop->vm->cpus; i++) {
        uint64_t seen = deadlines_of(loop->deadlines, i);

        if (seen <= now) {
            arch_timer_update(loop->vm->timer, i);
            deadlines_expired(loop->deadlines, i, seen,
                              arch_timer_deadline(loop->vm->timer, i));
        }
    }
    arm_timer(loop);
}

void loop_timer_changed(struct loop *loop, unsigned cpu)
{
    uint64_t deadline = arch_timer_deadline(loop->vm->timer, cpu);

    /* A later deadline is found when the earlier one expires for nothing. */
    if (deadlines_note(loop->deadlines, cpu, deadline) &&
        !atomic_exchange(&loop->timers_dirty, true)) {
        uv_async_send(&loop->wake);
    }
}

static void push_input(struct loop *loop)
{
    size_t taken =
        pl011_rx_push(loop->vm->uart, loop->input_waiting, loop->input_count);

    loop->input_count -= taken;
    memmove(loop->input_waiting, loop->input_waiting + taken,
            loop->input_count);
}

static void on_input(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf);

static void on_input_buffer(uv_handle_t *handle, size_t suggested,
                            uv_buf_t *buf)
{
    struct loop *loop = handle->data;

    (void)suggested;
    *buf = uv_buf_init(loop->input_buffer,
                       (unsigned)(INPUT_CHUNK - loop->input_count));
}

static void on_wake(uv_async_t *async)
{
    struct loop *loop = async->data;

    if (atomic_load(&loop->stop)) {
        uv_stop(&loop->uv);
    }
    if (atomic_exchange(&loop->console_dirty, false)) {
        loop_flush_console(loop);
    }
    if (atomic_exchange(&loop->timers_dirty, false)) {
        arm_timer(loop);
    }
    if (loop->input_count) {
        push_input(loop);
        if (loop->input_count < INPUT_CHUNK && loop->input_open) {
            uv_read_start(&loop->input.stream, on_input_buffer, on_input);
        }
    }
}

static void on_input(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct loop *loop = stream->data;

    if (count < 0) {
        uv_read_stop(stream);
        return;
    }
    memcpy(loop->input_waiting + loop->input_count, buf->base, (size_t)count);
    loop->input_count += (size_t)count;
    push_input(loop);
    if (loop->input_count == INPUT_CHUNK) {
        uv_read_stop(stream); /* until the guest has read: on_wake() */
    }
}

void loop_console_room(struct loop *loop)
{
    uv_async_send(&loop->wake);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct loop *loop = signal->data;

    (void)number;
    vm_abandon(loop->vm, VM_OUTCOME_INTERRUPTED);
}

static void on_timeout(uv_timer_t *timer)
{
    struct loop *loop = timer->data;

    vm_abandon(loop->vm, VM_OUTCOME_TIMEOUT);
}

static void open_input(struct loop *loop)
{
    switch (uv_guess_handle(STDIN_FILENO)) {
    case UV_TTY:
        loop->input_open =
            uv_tty_init(&loop->uv, &loop->input.tty, STDIN_FILENO, 1) == 0;
        break;
    case UV_NAMED_PIPE:
        loop->input_open = uv_pipe_init(&loop->uv, &loop->input.pipe, 0) == 0 &&
                           uv_pipe_open(&loop->input.pipe, STDIN_FILENO) == 0;
        break;
    default:
        return; /* no input: a file or /dev/null */
    }
    if (loop->input_open) {
        loop->input.stream.data = loop;
        uv_read_start(&loop->input.stream, on_input_buffer, on_input);
    }
}

static bool init_handles(struct loop *loop, GError **error)
{
    int err = uv_loop_init(&loop->uv);

    if (err) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT, "the event loop: %s",
                    uv_strerror(err));
        return false;
    }
    loop->timer_fd =
        timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (loop->timer_fd < 0) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT, "timerfd: %s",
                    g_strerror(errno));
        return false;
    }
    uv_async_init(&loop->uv, &loop->wake, on_wake);
    uv_signal_init(&loop->uv, &loop->sigint);
    uv_signal_init(&loop->uv, &loop->sigterm);
    uv_timer_init(&loop->uv, &loop->timeout);
    uv_poll_init(&loop->uv, &loop->timer_poll, loop->timer_fd);
    loop->timer_poll_open = true;
    loop->wake.data = loop;
    loop->sigint.data = loop;
    loop->sigterm.data = loop;
    loop->timeout.data = loop;
    loop->timer_poll.data = loop;
    return true;
}

struct loop *loop_new(struct vm *vm, GError **error)
{
    struct loop *loop = g_new0(struct loop, 1);

    loop->vm = vm;
    loop->timer_fd = -1;
    loop->console = g_byte_array_new();
    uv_mutex_init(&loop->console_lock);
    loop->deadlines = deadlines_new(vm->cpus);
    if (!init_handles(loop, error)) {
        loop_free(loop);
        return NULL;
    }
    return loop;
}

static void close_handle(uv_handle_t *handle, void *opaque)
{
    (void)opaque;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

void loop_free(struct loop *loop)
{
    if (!loop) {
        return;
    }
    if (loop->timer_poll_open) {
        uv_walk(&loop->uv, close_handle, NULL);
        uv_run(&loop->uv, UV_RUN_DEFAULT);
        uv_loop_close(&loop->uv);
    }
    if (loop->timer_fd >= 0) {
        close(loop->timer_fd);
    }
    g_byte_array_unref(loop->console);
    uv_mutex_destroy(&loop->console_lock);
    deadlines_free(loop->deadlines);
    g_free(loop);
}

void loop_run(struct loop *loop)
{
    const struct vm_config *config = loop->vm->config;

    uv_signal_start(&loop->sigint, on_signal, SIGINT);
    uv_signal_start(&loop->sigterm, on_signal, SIGTERM);
    uv_poll_start(&loop->timer_poll, UV_READABLE, on_timer_fd);
    if (config->timeout_s) {
        uv_timer_start(&loop->timeout, on_timeout,
                       (uint64_t)config->timeout_s * 1000, 0);
    }
    /* What a person types has no place in a deterministic run. */
    if (!config->quiet && !loop->vm->det) {
        open_input(loop);
    }
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    if (loop->input_open) {
        uv_read_stop(&loop->input.stream);
    }
    uv_tty_reset_mode();
    loop_flush_console(loop);
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->stop, true);
    uv_async_send(&loop->wake);
}
