/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exhaustive search, one run at a time, stateless but for the choices.
 *
 * dfs: depth first over the tree of all choices. The stack is the current path;
 * the next run repeats it up to the last node that has an alternative left,
 * takes that, and goes on plainly.
 *
 * icb: iterative context bounding (Musuvathi and Qadeer, PLDI 2007). A run is
 * the plain one plus deviations, of which preemptions cost 1 and others
 * nothing; each run is remembered as its last deviation and the run it was
 * found in. All runs with c preemptions come before those with c+1, and each
 * once. The search knows only how far the nodes of a run reach, not what lies
 * there: it asks for "the first node at depth d or deeper of this class", and
 * learns in the run which one that was.
 *
 * Neither lets a spinning vCPU spin on while others could run (see struct
 * fair), else the tree would have endless branches.
 */
#include "choice/source_priv.h"

/* Numbers that the guest asked for are part of icb's tree up to this many. */
#define ICB_INPUTS 8u
#define NOTHING UINT32_MAX

/* --- dfs --- */

struct node {
    uint16_t n, at;
};

struct dfs_source {
    struct choice_source base;
    struct fair fair;
    GArray *path;   /* struct node */
    uint32_t depth; /* nodes of this run so far */
    uint32_t fixed; /* nodes of path that this run must repeat */
    uint64_t runs;
    bool complete;
    char *problem;
};

static unsigned dfs_node(struct dfs_source *self, unsigned n)
{
    struct node node = {.n = n};

    if (self->problem) {
        return 0;
    }
    if (self->depth < self->fixed) {
        node = g_array_index(self->path, struct node, self->depth);
        if (node.n != n) {
            self->problem = g_strdup_printf(
                "choice %u of the search had %u alternatives in the last run, "
                "now it has %u: the runs are not repeatable",
                self->depth, node.n, n);
            return 0;
        }
    } else if (self->depth == CHOICE_SEARCH_DEPTH) {
        self->problem =
            g_strdup_printf("a run has more than %u choices: too many to try "
                            "all; bound it, or use another strategy",
                            CHOICE_SEARCH_DEPTH);
        return 0;
    } else {
        g_array_append_val(self->path, node);
    }
    self->depth++;
    return node.at;
}

static unsigned dfs_choose(struct choice_source *source, enum choice_kind kind,
                           unsigned n, uint64_t index,
                           const struct choice_candidate *candidates)
{
    struct dfs_source *self = (struct dfs_source *)source;
    uint16_t options[CHOICE_MAX];
    unsigned count, value;

    (void)index;
    if (kind != CHOICE_vcpu) {
        return dfs_node(self, n);
    }
    count = fair_options(&self->fair, candidates, n, options);
    value = count == 1 ? options[0] : options[dfs_node(self, count)];
    fair_picked(&self->fair, &candidates[value]);
    return value;
}

static bool dfs_next_run(struct choice_source *source)
{
    struct dfs_source *self = (struct dfs_source *)source;
    GArray *path = self->path;

    if (self->depth < self->fixed && !self->problem) {
        self->problem = g_strdup_printf(
            "a run ended after %u choices of the search, the last one made the "
            "same %u and more: the runs are not repeatable",
            self->depth, self->fixed);
    }
    if (self->problem || self->complete) {
        return false;
    }
    self->runs++;
    while (path->len) {
        struct node *top = &g_array_index(path, struct node, path->len - 1);

        if (++top->at < top->n) {
            break;
        }
        g_array_set_size(path, path->len - 1);
    }
    self->complete = !path->len;
    self->fixed = path->len;
    self->depth = 0;
    self->fair = (struct fair){0};
    return !self->complete;
}

static const char *dfs_problem(struct choice_source *source)
{
    return ((struct dfs_source *)source)->problem;
}

static void dfs_free(struct choice_source *source)
{
    struct dfs_source *self = (struct dfs_source *)source;

    g_array_unref(self->path);
    g_free(self->problem);
    g_free(self);
}

static const struct choice_source_ops dfs_ops = {
    .choose = dfs_choose,
    .next_run = dfs_next_run,
    .problem = dfs_problem,
    .free = dfs_free,
};

struct choice_source *source_dfs_new(void)
{
    struct dfs_source *self = g_new0(struct dfs_source, 1);

    self->base.ops = &dfs_ops;
    self->path = g_array_new(FALSE, FALSE, sizeof(struct node));
    return &self->base;
}

/* --- icb --- */

enum node_class { NODE_FREE, NODE_PREEMPTION, NODE_CLASSES };

struct deviation {
    uint32_t depth; /* which node of the run */
    uint16_t value;
};

/* A run that was made. */
struct made {
    uint32_t parent; /* index of another, less by its last deviation */
    struct deviation deviation;
    uint32_t last[NODE_CLASSES]; /* last node after it, or NOTHING */
};

struct icb_source {
    struct choice_source base;
    unsigned bound;
    struct fair fair;
    GArray *made; /* struct made, by preemptions */

    /* The search: children of made[expanded] that deviate in a `class` node. */
    unsigned level; /* preemptions of the runs being made */
    enum node_class class;
    uint32_t expanded;
    uint32_t level_begin; /* the first of made with `level` preemptions */
    uint32_t sources_end; /* for NODE_PREEMPTION: the end of level - 1 */

    /* This run: */
    GArray *path;      /* struct deviation, to repeat */
    uint32_t repeated; /* how many of them are behind us */
    uint32_t depth;    /* nodes so far */
    bool deviates;     /* it adds one to path (all but the first run) */
    bool deviated;     /* and that is behind us */
    uint32_t from;     /* at the first node of class at this depth or deeper */
    uint16_t which;    /* its alternative, from 1 */
    uint16_t found_n;  /* how many there were */
    struct made run;   /* what will be remembered of it */
    uint32_t last_run; /* vCPU */

    bool complete;
    char *problem;
};

/* The answer at a node whose options are in order; the first is the plain one.
 */
static unsigned icb_node(struct icb_source *self, enum node_class class,
                         const uint16_t *options, unsigned count)
{
    uint32_t depth = self->depth;

    if (self->problem) {
        return options[0];
    }
    if (depth == CHOICE_SEARCH_DEPTH) {
        self->problem =
            g_strdup_printf("a run has more than %u choices: too many to try "
                            "all; bound it, or use another strategy",
                            CHOICE_SEARCH_DEPTH);
        return options[0];
    }
    self->depth++;
    if (self->repeated < self->path->len) {
        const struct deviation *next =
            &g_array_index(self->path, struct deviation, self->repeated);

        if (next->depth != depth) {
            return options[0];
        }
        self->repeated++;
        for (unsigned i = 1; i < count; i++) {
            if (options[i] == next->value) {
                return next->value;
            }
        }
        self->problem = g_strdup_printf(
            "choice %u of the search has no alternative %u any more: the runs "
            "are not repeatable",
            depth, next->value);
        return options[0];
    }
    if (self->deviates && !self->deviated) {
        if (class != self->class || depth < self->from ||
            self->which >= count) {
            return options[0];
        }
        self->deviated = true;
        self->found_n = count;
        self->run.deviation.depth = depth;
        self->run.deviation.value = options[self->which];
        return options[self->which];
    }
    self->run.last[class] = depth;
    return options[0];
}

/*
 * A preemption is any but the plain answer while the one that ran last could
 * go on and does not spin. If it cannot, all answers are free.
 */
static enum node_class classify(const struct icb_source *self,
                                const struct choice_candidate *candidates,
                                unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (candidates[i].vcpu == self->last_run) {
            return candidates[i].event == CHOICE_EVENT_SPIN ? NODE_FREE
                                                            : NODE_PREEMPTION;
        }
    }
    return NODE_FREE;
}

static unsigned icb_choose(struct choice_source *source, enum choice_kind kind,
                           unsigned n, uint64_t index,
                           const struct choice_candidate *candidates)
{
    struct icb_source *self = (struct icb_source *)source;
    uint16_t options[CHOICE_MAX];
    unsigned count, value;

    (void)index;
    if (kind == CHOICE_input && n <= ICB_INPUTS) {
        for (unsigned i = 0; i < n; i++) {
            options[i] = i;
        }
        return icb_node(self, NODE_FREE, options, n);
    }
    if (kind != CHOICE_vcpu) {
        return 0;
    }
    count = fair_options(&self->fair, candidates, n, options);
    value = options[0];
    if (count > 1) {
        value = icb_node(self, classify(self, candidates, n), options, count);
    }
    fair_picked(&self->fair, &candidates[value]);
    self->last_run = candidates[value].vcpu;
    return value;
}

static void icb_begin(struct icb_source *self)
{
    self->fair = (struct fair){0};
    self->repeated = 0;
    self->depth = 0;
    self->deviated = false;
    self->run.parent = self->expanded;
    self->run.last[NODE_FREE] = NOTHING;
    self->run.last[NODE_PREEMPTION] = NOTHING;
    self->last_run = UINT32_MAX;
}

static const struct made *made_at(const struct icb_source *self, uint32_t i)
{
    return &g_array_index(self->made, struct made, i);
}

/* The deviations of made[i], oldest first. */
static void load_path(struct icb_source *self, uint32_t i)
{
    GArray *path = self->path;

    g_array_set_size(path, 0);
    for (; i; i = made_at(self, i)->parent) {
        g_array_append_val(path, made_at(self, i)->deviation);
    }
    for (guint a = 0, b = path->len; a + 1 < b; a++) {
        struct deviation *data = &g_array_index(path, struct deviation, 0);
        struct deviation swap = data[a];

        b--;
        data[a] = data[b];
        data[b] = swap;
    }
}

/*
 * Begins with the children of made[expanded], or of the first one behind it
 * that has any: first those by preemption of all runs of the level before, then
 * those for free of the runs of this level, including the new ones.
 */
static bool find_parent(struct icb_source *self)
{
    for (;;) {
        uint32_t end = self->class == NODE_PREEMPTION ? self->sources_end
                                                      : self->made->len;

        for (; self->expanded < end; self->expanded++) {
            const struct made *parent = made_at(self, self->expanded);

            if (parent->last[self->class] != NOTHING) {
                load_path(self, self->expanded);
                self->from = self->expanded ? parent->deviation.depth + 1 : 0;
                self->which = 1;
                return true;
            }
        }
        if (self->class == NODE_PREEMPTION) {
            self->class = NODE_FREE;
            self->expanded = self->level_begin;
        } else if (self->level == self->bound ||
                   self->level_begin == self->made->len) {
            return false;
        } else {
            self->level++;
            self->class = NODE_PREEMPTION;
            self->expanded = self->level_begin;
            self->sources_end = self->made->len;
            self->level_begin = self->made->len;
        }
    }
}

static bool advance(struct icb_source *self)
{
    if (!self->deviates) {
        self->deviates = true;
        return find_parent(self);
    }
    if (self->which + 1u < self->found_n) {
        self->from = self->run.deviation.depth;
        self->which++;
        return true;
    }
    if (self->run.deviation.depth <
        made_at(self, self->expanded)->last[self->class]) {
        self->from = self->run.deviation.depth + 1;
        self->which = 1;
        return true;
    }
    self->expanded++;
    return find_parent(self);
}

static bool icb_next_run(struct choice_source *source)
{
    struct icb_source *self = (struct icb_source *)source;

    if (!self->problem && (self->repeated < self->path->len ||
                           (self->deviates && !self->deviated))) {
        self->problem = g_strdup_printf(
            "a run ended after %u choices of the search, before it came to "
            "where it was to differ from the last one: the runs are not "
            "repeatable",
            self->depth);
    }
    if (!self->problem && self->made->len == CHOICE_SEARCH_RUNS) {
        self->problem =
            g_strdup_printf("more than %u runs to remember; use a smaller k",
                            CHOICE_SEARCH_RUNS);
    }
    if (self->problem || self->complete) {
        return false;
    }
    g_array_append_val(self->made, self->run);
    if (!advance(self)) {
        self->complete = true;
        return false;
    }
    icb_begin(self);
    return true;
}

static const char *icb_problem(struct choice_source *source)
{
    return ((struct icb_source *)source)->problem;
}

static void icb_free(struct choice_source *source)
{
    struct icb_source *self = (struct icb_source *)source;

    g_array_unref(self->made);
    g_array_unref(self->path);
    g_free(self->problem);
    g_free(self);
}

static const struct choice_source_ops icb_ops = {
    .choose = icb_choose,
    .next_run = icb_next_run,
    .problem = icb_problem,
    .free = icb_free,
};

struct choice_source *source_icb_new(unsigned bound)
{
    struct icb_source *self = g_new0(struct icb_source, 1);

    self->base.ops = &icb_ops;
    self->bound = bound;
    self->made = g_array_new(FALSE, FALSE, sizeof(struct made));
    self->path = g_array_new(FALSE, FALSE, sizeof(struct deviation));
    self->class = NODE_FREE;
    icb_begin(self);
    return &self->base;
}

bool choice_search_status(const struct choice_source *source,
                          struct choice_search *out)
{
    if (source->ops == &dfs_ops) {
        const struct dfs_source *self = (const struct dfs_source *)source;

        *out = (struct choice_search){.runs = self->runs,
                                      .complete = self->complete};
        return true;
    }
    if (source->ops == &icb_ops) {
        const struct icb_source *self = (const struct icb_source *)source;

        *out = (struct choice_search){.runs = self->made->len,
                                      .bound = self->level,
                                      .complete = self->complete};
        return true;
    }
    return false;
}
