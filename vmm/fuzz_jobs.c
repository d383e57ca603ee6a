/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -jobs=N and -fork=N: N processes of this program, job i being shard i of N
 * of the same campaign, so that no two do the same. They meet in the corpus
 * directory, where each looks for what the others found. What they say goes to
 * fuzz-0.log and so on.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"
#include "fuzz.h"

#define LOOK_EVERY_US 100000
#define STATUS_EVERY 10 /* looks */
#define TAIL_BYTES 4096

struct job {
    pid_t pid; /* 0: not begun, or over */
    bool is_over;
    int status;
    char *log;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static char **words_of(const struct fuzz_flags *f, unsigned jobs, unsigned i,
                       int argc, char *const *argv, const char *shared)
{
    GPtrArray *words = g_ptr_array_new();
    GPtrArray *own = fuzz_flags_for_job(argc, argv);
    bool has_rest = false;

    g_ptr_array_add(words, g_strdup("/proc/self/exe"));
    g_ptr_array_add(words, g_strdup("fuzz"));
    g_ptr_array_set_free_func(own, NULL);
    for (guint k = 0; k < own->len; k++) {
        g_ptr_array_add(words, own->pdata[k]);
    }
    g_ptr_array_unref(own);
    g_ptr_array_add(words, g_strdup_printf("-seed=%" PRIu64, f->seed));
    /* Every n-th of what is every N-th of it: shards of shards. */
    g_ptr_array_add(words, g_strdup_printf("-shard=%u/%u",
                                           f->shard_index + f->shard_count * i,
                                           f->shard_count * jobs));
    g_ptr_array_add(words, g_strdup_printf("-reload=%" PRIu64,
                                           f->has_reload ? f->reload : 1));
    if (f->campaign) {
        g_ptr_array_add(words,
                        g_strdup_printf("-campaign=%s/job-%u", f->campaign, i));
    }
    if (shared) {
        g_ptr_array_add(words, g_strdup(shared));
    }
    for (int k = 0; k < argc; k++) {
        has_rest = has_rest || strcmp(argv[k], "--") == 0;
        if (has_rest) {
            g_ptr_array_add(words, g_strdup(argv[k]));
        }
    }
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(words, FALSE);
}

static bool start(struct job *job, char **words)
{
    int log = open(job->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (log < 0) {
        return false;
    }
    job->pid = fork();
    if (job->pid == 0) {
        (void)dup2(log, STDOUT_FILENO);
        (void)dup2(log, STDERR_FILENO);
        execv(words[0], words);
        _exit(EXIT_ENVIRONMENT);
    }
    (void)close(log);
    return job->pid > 0;
}

/* The last line of the log that begins with '#'; to be freed, or NULL. */
static char *last_status(const char *path)
{
    char buffer[TAIL_BYTES + 1];
    g_auto(GStrv) lines = NULL;
    char *found = NULL;
    size_t count;
    FILE *f = fopen(path, "re");

    if (!f) {
        return NULL;
    }
    if (fseek(f, -TAIL_BYTES, SEEK_END) != 0) {
        rewind(f);
    }
    count = fread(buffer, 1, TAIL_BYTES, f);
    (void)fclose(f);
    buffer[count] = '\0';
    lines = g_strsplit(buffer, "\n", -1);
    for (char **line = lines; *line && line[1]; line++) {
        if ((*line)[0] == '#') {
            g_free(found);
            found = g_strdup(*line);
        }
    }
    return found;
}

static uint64_t number_after(const char *line, const char *key)
{
    const char *at = strstr(line, key);

    return at ? g_ascii_strtoull(at + strlen(key), NULL, 10) : 0;
}

/* -fork: all of them in one line. Coverage is that of the best. */
static void show(const struct job *jobs, unsigned count, int64_t start_us)
{
    uint64_t runs = 0, rate = 0, tlb = 0, sched = 0, corpus = 0;
    unsigned running = 0;

    for (unsigned i = 0; i < count; i++) {
        g_autofree char *line = last_status(jobs[i].log);

        running += jobs[i].pid != 0;
        if (line) {
            runs += number_after(line, "#");
            rate += jobs[i].pid ? number_after(line, "exec/s: ") : 0;
            tlb = MAX(tlb, number_after(line, "tlb: "));
            sched = MAX(sched, number_after(line, "sched: "));
            corpus = MAX(corpus, number_after(line, "corp: "));
        }
    }
    printf("#%" PRIu64 ": tlb: %" PRIu64 " sched: %" PRIu64 " corp: %" PRIu64
           " exec/s: %" PRIu64 " jobs: %u/%u time: %" PRId64 "s\n",
           runs, tlb, sched, corpus, rate, running, count,
           (g_get_monotonic_time() - start_us) / 1000000);
    (void)fflush(stdout);
}

/* What is of interest in the log of one that is over: all but its progress. */
static void show_log(unsigned i, const struct job *job)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    g_autofree char *last = last_status(job->log);

    printf("================== Job %u exited with exit code %d "
           "============\n",
           i, job->status);
    if (g_file_get_contents(job->log, &text, NULL, NULL)) {
        lines = g_strsplit(text, "\n", -1);
        for (char **line = lines; *line; line++) {
            if ((*line)[0] && (*line)[0] != '#') {
                printf("%s\n", *line);
            }
        }
    }
    if (last) {
        printf("%s\n", last);
    }
    (void)fflush(stdout);
}

/* A finding counts more than a hang, that more than an error. */
static int worse(const struct fuzz_flags *f, int a, int b)
{
    const int order[] = {(int)f->error_exitcode, (int)f->timeout_exitcode,
                         EXIT_USAGE, EXIT_ENVIRONMENT, EXIT_INTERRUPTED};

    for (size_t i = 0; i < G_N_ELEMENTS(order); i++) {
        if (a == order[i] || b == order[i]) {
            return order[i];
        }
    }
    return MAX(a, b);
}

/* Whoever is over is told. How many still run. */
static unsigned reap(struct job *jobs, unsigned count)
{
    unsigned running = 0;

    for (unsigned i = 0; i < count; i++) {
        int status;

        if (jobs[i].pid && waitpid(jobs[i].pid, &status, WNOHANG) > 0) {
            jobs[i].status =
                WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_ENVIRONMENT;
            jobs[i].pid = 0;
            jobs[i].is_over = true;
            show_log(i, &jobs[i]);
        }
        running += jobs[i].pid != 0;
    }
    return running;
}

int fuzz_jobs(const struct fuzz_flags *f, int argc, char *const *argv,
              const char *shared)
{
    unsigned count = (unsigned)(f->fork ? f->fork : f->jobs);
    unsigned workers = (unsigned)(f->fork      ? f->fork
                                  : f->workers ? f->workers
                                               : g_get_num_processors());
    struct job *jobs = g_new0(struct job, count);
    struct sigaction action = {.sa_handler = on_signal};
    int64_t start_us = g_get_monotonic_time();
    unsigned next = 0, running = 0, looks = 0;
    int status = EXIT_FINE;

    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    for (unsigned i = 0; i < count; i++) {
        jobs[i].log = g_strdup_printf("fuzz-%u.log", i);
    }
    do {
        while (next < count && running < workers && !interrupted) {
            g_auto(GStrv) words = words_of(f, count, next, argc, argv, shared);

            if (!start(&jobs[next], words)) {
                fprintf(stderr, "shootdown: %s: %s\n", jobs[next].log,
                        g_strerror(errno));
                status = EXIT_ENVIRONMENT;
                interrupted = 1;
                break;
            }
            next++;
            running++;
        }
        g_usleep(LOOK_EVERY_US);
        for (unsigned i = 0; interrupted && i < count; i++) {
            if (jobs[i].pid) {
                (void)kill(jobs[i].pid, SIGINT);
            }
        }
        running = reap(jobs, count);
        if (f->fork && ++looks % STATUS_EVERY == 0) {
            show(jobs, count, start_us);
        }
    } while (running || (next < count && !interrupted));
    for (unsigned i = 0; i < count; i++) {
        status = jobs[i].is_over ? worse(f, status, jobs[i].status) : status;
        g_free(jobs[i].log);
    }
    g_free(jobs);
    return status;
}
