/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flags of `shootdown fuzz`; see fuzz_flags.h. */
#include "fuzz_flags.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "config_priv.h"

enum type { TYPE_NUMBER, TYPE_TEXT };

static const struct flag {
    const char *name;
    enum type type;
    size_t offset;
    uint64_t low, high, usual;
    const char *usual_text, *arg, *help;
} flags[] = {
#define FUZZ_NUMBER(name, low, high, usual, arg, text)                         \
    {#name, TYPE_NUMBER, offsetof(struct fuzz_flags, name),                    \
     low,   high,        usual,                                                \
     NULL,  arg,         text},
#define FUZZ_TEXT(name, usual, arg, text)                                      \
    {#name, TYPE_TEXT, offsetof(struct fuzz_flags, name), 0, 0, 0, usual,      \
     arg,   text},
#include "fuzz_flags.inc"
#undef FUZZ_NUMBER
#undef FUZZ_TEXT
};

/* Those of libFuzzer that cannot mean anything here, and why. */
static const struct {
    const char *name, *why;
} refused[] = {
    {"dict", "choices are numbers, there are no words to put in"},
    {"only_ascii", "choices are numbers, not text"},
    {"rss_limit_mb", "what an execution can use is --mem and nothing else"},
    {"malloc_limit_mb", "what an execution can use is --mem and nothing else"},
    {"detect_leaks", "the guest's memory is put back after each execution"},
    {"use_value_profile", "coverage is of events, not of comparisons"},
    {"use_cmp", "coverage is of events, not of comparisons"},
    {"use_counters", "coverage always counts"},
    {"entropic", "inputs are chosen by what was new in them"},
    {"len_control", "-max_len limits the choices"},
    {"mutate_depth", "one to four mutations are stacked"},
    {"data_flow_trace", "there is no data flow trace of a schedule"},
    {"collect_data_flow", "there is no data flow trace of a schedule"},
    {"seed_inputs", "give the files' directory instead"},
    {"close_fd_mask", "the guest's console is never shown"},
    {"merge_control_file", "a merge begins again, it takes seconds"},
    {"cleanse_crash", "-minimize_crash=1 zeroes what it can"},
};

static const struct flag *find(const char *name, size_t length)
{
    for (size_t i = 0; i < G_N_ELEMENTS(flags); i++) {
        size_t k = 0;

        while (k < length && flags[i].name[k] &&
               (flags[i].name[k] == name[k] ||
                (flags[i].name[k] == '_' && name[k] == '-'))) {
            k++;
        }
        if (k == length && !flags[i].name[k]) {
            return &flags[i];
        }
    }
    if (length == 1 && name[0] == 'o') { /* AFL's */
        return find("campaign", 8);
    }
    return NULL;
}

static bool is_refused(const char *name, size_t length, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        if (strlen(refused[i].name) == length &&
            strncmp(refused[i].name, name, length) == 0) {
            config_usage(error, "-%s is not supported: %s", refused[i].name,
                         refused[i].why);
            return true;
        }
    }
    return false;
}

static bool take_number(struct fuzz_flags *f, const struct flag *flag,
                        const char *text, GError **error)
{
    uint64_t *out = (uint64_t *)(void *)((char *)f + flag->offset);
    g_autofree char *option = g_strdup_printf("-%s", flag->name);

    if (strcmp(flag->name, "runs") == 0 && strcmp(text, "-1") == 0) {
        *out = FUZZ_RUNS_ENDLESS;
        return true;
    }
    if (flag->high == UINT64_MAX) {
        return config_u64(option, text, out, error);
    } else {
        unsigned value = 0;

        if (!config_number(option, text, flag->low, flag->high, &value,
                           error)) {
            return false;
        }
        *out = value;
    }
    return true;
}

static bool take(struct fuzz_flags *f, const struct flag *flag,
                 const char *text, GError **error)
{
    f->has_runs = f->has_runs || strcmp(flag->name, "runs") == 0;
    f->has_seed = f->has_seed || strcmp(flag->name, "seed") == 0;
    f->has_reload = f->has_reload || strcmp(flag->name, "reload") == 0;
    if (flag->type == TYPE_NUMBER) {
        return take_number(f, flag, text, error);
    }
    if (!text[0]) {
        return config_usage(error, "-%s= needs a value", flag->name);
    } else {
        char **out = (char **)(void *)((char *)f + flag->offset);

        g_free(*out);
        *out = g_strdup(text);
    }
    return true;
}

/* "i/n" */
static bool take_shard(struct fuzz_flags *f, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(f->shard ? f->shard : "0/1", "/", -1);
    guint64 i = 0, n = 0;

    if (g_strv_length(parts) != 2 ||
        !g_ascii_string_to_unsigned(parts[1], 10, 1, 1000000, &n, NULL) ||
        !g_ascii_string_to_unsigned(parts[0], 10, 0, n - 1, &i, NULL)) {
        return config_usage(error,
                            "-shard is '%s': accepted is I/N, with N from 1 to "
                            "1000000 and I from 0 to N-1",
                            f->shard);
    }
    f->shard_index = (unsigned)i;
    f->shard_count = (unsigned)n;
    return true;
}

static bool take_rules(struct fuzz_flags *f, GError **error)
{
    g_auto(GStrv) names =
        g_strsplit(f->ignore_rules ? f->ignore_rules : "", ",", -1);

    for (char **name = names; *name; name++) {
        guint64 number = 0;

        if ((*name)[0] != 'S' ||
            !g_ascii_string_to_unsigned(*name + 1, 10, 1, 15, &number, NULL)) {
            return config_usage(error,
                                "-ignore_rules is '%s': accepted are rules "
                                "from S1 to S15 with commas between",
                                f->ignore_rules);
        }
        f->ignored_rules |= UINT32_C(1) << number;
    }
    return true;
}

static bool check(struct fuzz_flags *f, GError **error)
{
    if (f->merge && f->minimize_crash) {
        return config_usage(
            error, "-merge=1 and -minimize_crash=1 exclude each other");
    }
    if (f->fork && f->jobs) {
        return config_usage(error, "-fork=N and -jobs=N exclude each other");
    }
    if (f->exact_artifact_path && (f->keep_going || f->ignore_crashes)) {
        return config_usage(error,
                            "-exact_artifact_path is one file, and with "
                            "-keep_going=1 there may be several findings");
    }
    return take_shard(f, error) && take_rules(f, error);
}

/* A word of ours: -name, -name=..., --name. Its name's place and length. */
static bool is_flag(const char *word, const char **out_name, size_t *out_length)
{
    const char *name = word + (strncmp(word, "--", 2) == 0 ? 2 : 1);

    if (word[0] != '-') {
        return false;
    }
    *out_name = name;
    *out_length = strcspn(name, "=");
    return *out_length > 1 || (*out_length == 1 && name[0] == 'o');
}

bool fuzz_flags_parse(struct fuzz_flags *f, int argc, char *const *argv,
                      char ***out_words, GError **error)
{
    GPtrArray *words = g_ptr_array_new();
    bool ok = true;
    int i;

    *f = (struct fuzz_flags){0};
    for (size_t k = 0; k < G_N_ELEMENTS(flags); k++) {
        char *at = (char *)f + flags[k].offset;

        if (flags[k].type == TYPE_NUMBER) {
            *(uint64_t *)(void *)at = flags[k].usual;
        } else {
            *(char **)(void *)at = g_strdup(flags[k].usual_text);
        }
    }
    for (i = 0; ok && i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool doubled = strncmp(argv[i], "--", 2) == 0;
        const struct flag *flag = NULL;
        const char *name = NULL, *value;
        size_t length = 0;

        if (!is_flag(argv[i], &name, &length)) {
            g_ptr_array_add(words, argv[i]);
            continue;
        }
        flag = find(name, length);
        value = name[length] == '=' ? name + length + 1 : NULL;
        if (!flag && doubled) {
            g_ptr_array_add(words, argv[i]); /* of the machine */
        } else if (!flag) {
            ok = is_refused(name, length, error)
                     ? false
                     : config_usage(error,
                                    "there is no flag -%.*s; 'shootdown fuzz "
                                    "--help' shows those that there are",
                                    (int)length, name);
        } else if (value) {
            ok = take(f, flag, value, error);
        } else if (flag->type == TYPE_NUMBER && flag->high == 1) {
            ok = take(f, flag, "1", error);
        } else if ((doubled || length == 1) && i + 1 < argc) {
            ok = take(f, flag, argv[++i], error);
        } else {
            ok = config_usage(error, "-%s needs a value, as in -%s=%s",
                              flag->name, flag->name, flag->arg);
        }
    }
    for (; i < argc; i++) {
        g_ptr_array_add(words, argv[i]);
    }
    g_ptr_array_add(words, NULL);
    *out_words = (char **)g_ptr_array_free(words, FALSE);
    return ok && check(f, error);
}

void fuzz_flags_fini(struct fuzz_flags *f)
{
    for (size_t k = 0; k < G_N_ELEMENTS(flags); k++) {
        if (flags[k].type == TYPE_TEXT) {
            g_free(*(char **)(void *)((char *)f + flags[k].offset));
        }
    }
    *f = (struct fuzz_flags){0};
}

char *fuzz_flags_help(void)
{
    GString *text = g_string_new("Flags (as libFuzzer's, one dash and '='):\n");

    for (size_t i = 0; i < G_N_ELEMENTS(flags); i++) {
        g_autofree char *left =
            g_strdup_printf("-%s=%s", flags[i].name, flags[i].arg);

        g_string_append_printf(text, "  %-25s %s\n", left, flags[i].help);
    }
    return g_string_free(text, FALSE);
}

GPtrArray *fuzz_flags_for_job(int argc, char *const *argv)
{
    static const char *const own[] = {"jobs",  "workers",  "fork", "reload",
                                      "shard", "campaign", "seed", NULL};
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);

    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const struct flag *flag = NULL;
        const char *name = NULL;
        size_t length = 0;

        if (is_flag(argv[i], &name, &length)) {
            flag = find(name, length);
        }
        if (!flag || !g_strv_contains(own, flag->name)) {
            g_ptr_array_add(words, g_strdup(argv[i]));
        } else if (name[length] != '=' && flag->high != 1) {
            i++; /* its value is a word of its own */
        }
    }
    return words;
}
