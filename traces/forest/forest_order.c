/* SPDX-License-Identifier: Apache-2.0
 * Rows in the order of their times. Logs are sorted or nearly so; what is not is sorted by radix
 * while that fits the memory budget, else by runs: a heap of the next HEAP rows hands out the
 * earliest, so that rows out of place by less than that come out in one run, and runs are merged
 * two by two. Runs are written and read in order and may leave memory. */
#include "traces/forest/forest_nodes.h"

#include "base/alloc.h"

#include <string.h>

#define HEAP ((size_t)1 << 16)

#define RADIX_BITS 11
#define RADIX (1u << RADIX_BITS)

/* One pass of a stable radix sort of n items of width words by bits of their first word. */
static inline void radix_pass(const uint64_t *from, uint64_t *to, uint64_t n, size_t width,
                              unsigned shift)
{
    uint64_t at[RADIX] = { 0 }, sum = 0;
    for (uint64_t i = 0; i < n; i++)
        at[(from[i * width] >> shift) & (RADIX - 1)]++;
    for (unsigned b = 0; b < RADIX; b++) {
        uint64_t count = at[b];
        at[b] = sum;
        sum += count;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t *slot = to + at[(from[i * width] >> shift) & (RADIX - 1)]++ * width;
        slot[0] = from[i * width];
        if (width > 1)
            slot[1] = from[i * width + 1];
    }
}

/* Sorts by the first word from bit low on, where it is at most largest; the result is in *a. */
static void radix_sort(uint64_t **a, uint64_t **b, uint64_t n, size_t width, unsigned low,
                       uint64_t largest)
{
    for (unsigned shift = low; shift < 64 && largest >> (shift - low); shift += RADIX_BITS) {
        if (width == 1)
            radix_pass(*a, *b, n, 1, shift);
        else
            radix_pass(*a, *b, n, 2, shift);
        uint64_t *t = *a;
        *a = *b;
        *b = t;
    }
}

/* The coarsest of 1 ms, 1 us, 1 ns that all times are multiples of. */
static uint64_t clock_unit(const struct kvc_forest *f)
{
    uint64_t unit = 1000000;
    for (uint64_t i = 0; i < f->n_rows && unit > 1; i++)
        while (f->time_ns[i] % unit)
            unit /= 1000;
    return unit;
}

/* Times of logs are mostly whole milliseconds of a short span; then time and row fit one word. */
static bool order_radix(const struct kvc_forest *f, uint64_t span, uint64_t **out)
{
    uint64_t n = f->n_rows, unit = clock_unit(f), largest = span / unit;
    bool narrow = largest <= UINT32_MAX && n <= UINT32_MAX;
    size_t width = narrow ? 1 : 2;
    uint64_t *a = kvc_malloc((size_t)n, width * sizeof(*a));
    uint64_t *b = kvc_malloc((size_t)n, width * sizeof(*b));
    if (a && b) {
        for (uint64_t i = 0; i < n; i++) {
            a[i * width] = narrow ? f->time_ns[i] / unit << 32 | i : f->time_ns[i];
            if (!narrow)
                a[i * width + 1] = i;
        }
        radix_sort(&a, &b, n, width, narrow ? 32 : 0, narrow ? largest : span);
        for (uint64_t i = 0; i < n; i++)
            a[i] = narrow ? a[i] & UINT32_MAX : a[i * width + 1];
        *out = a;
        a = NULL;
    }
    bool ok = *out != NULL;
    kvc_free(a);
    kvc_free(b);
    return ok;
}

/* ---- by runs ---- */

struct entry {
    uint64_t run, row;
};

struct sorter {
    const uint64_t *time;
    struct entry *heap;
    size_t n;
};

static inline bool earlier(const uint64_t *time, uint64_t a, uint64_t b)
{
    return time[a] < time[b] || (time[a] == time[b] && a < b);
}

static bool before(const struct sorter *s, struct entry a, struct entry b)
{
    return a.run < b.run || (a.run == b.run && earlier(s->time, a.row, b.row));
}

static void sink(struct sorter *s, size_t i, struct entry e)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < s->n && before(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (child >= s->n || !before(s, s->heap[child], e))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = e;
}

/* Writes all rows to out in runs; ends[] tells where each ends. */
static bool make_runs(struct kvc_forest *f, uint64_t *out, uint64_t **ends, size_t *n_runs)
{
    struct sorter s = { .time = f->time_ns, .heap = kvc_malloc(HEAP, sizeof(struct entry)) };
    size_t cap = 0;
    uint64_t next = 0, done = 0, run = 0;
    if (!s.heap)
        return false;
    for (; s.n < HEAP && next < f->n_rows; next++)
        s.heap[s.n++] = (struct entry){ 0, next };
    for (size_t i = s.n / 2; i-- > 0;)
        sink(&s, i, s.heap[i]);
    while (s.n) {
        struct entry first = s.heap[0];
        if (first.run != run) {
            if (!kvc_grow((void **)ends, &cap, *n_runs + 2, sizeof(**ends)))
                break;
            (*ends)[(*n_runs)++] = done;
            run = first.run;
        }
        out[done++] = first.row;
        if (next < f->n_rows) { /* too late for this run: into the next */
            bool late = earlier(f->time_ns, next, first.row);
            sink(&s, 0, (struct entry){ run + late, next });
            next++;
        } else if (--s.n) {
            sink(&s, 0, s.heap[s.n]);
        }
    }
    bool ok = !s.n && kvc_grow((void **)ends, &cap, *n_runs + 1, sizeof(**ends));
    if (ok)
        (*ends)[(*n_runs)++] = done;
    kvc_free(s.heap);
    return ok;
}

static void merge(const uint64_t *time, const uint64_t *from, uint64_t a, uint64_t b, uint64_t end,
                  uint64_t *to)
{
    uint64_t i = a, j = b, k = a;
    while (i < b && j < end) /* of equals the row that came first, whichever run it is in */
        to[k++] = earlier(time, from[j], from[i]) ? from[j++] : from[i++];
    memcpy(to + k, from + i, (b - i) * sizeof(*to));
    memcpy(to + k + (b - i), from + j, (end - j) * sizeof(*to));
}

static bool order_runs(struct kvc_forest *f, uint64_t **order, struct kvc_spill_array *held)
{
    uint64_t *other = NULL, *ends = NULL;
    struct kvc_spill_array held_other = { 0 };
    size_t runs = 0, bytes = (size_t)f->n_rows * sizeof(**order);
    bool ok = kvc_spill_grow(f->spill, order, held, bytes, false) &&
              make_runs(f, *order, &ends, &runs) &&
              (runs == 1 || kvc_spill_grow(f->spill, &other, &held_other, bytes, false));
    while (ok && runs > 1) {
        size_t n = 0;
        for (size_t r = 0; r < runs; r += 2) {
            uint64_t a = r ? ends[r - 1] : 0, b = ends[r], end = r + 1 < runs ? ends[r + 1] : b;
            merge(f->time_ns, *order, a, b, end, other);
            /* Where this pair begins is read above before the slot is written: n <= r. */
            ends[n++] = end;
        }
        runs = n;
        uint64_t *t = *order;
        struct kvc_spill_array h = *held;
        *order = other;
        *held = held_other;
        other = t;
        held_other = h;
    }
    kvc_spill_free(f->spill, &other, &held_other);
    kvc_free(ends);
    return ok;
}

bool kvc_forest_order(struct kvc_forest *f, uint64_t **order, struct kvc_spill_array *held)
{
    uint64_t n = f->n_rows, first = UINT64_MAX, last = 0, *sorted_rows = NULL;
    bool sorted = true;
    for (uint64_t i = 0; i < n; i++) {
        sorted = sorted && (i == 0 || f->time_ns[i] >= f->time_ns[i - 1]);
        first = f->time_ns[i] < first ? f->time_ns[i] : first;
        last = f->time_ns[i] > last ? f->time_ns[i] : last;
    }
    for (uint64_t i = 0; first && i < n; i++)
        f->time_ns[i] -= first;
    *order = NULL;
    if (sorted)
        return true;
    if (n > f->spill->limit / 64) /* radix takes up to 32 bytes a row */
        return order_runs(f, order, held);
    bool ok = order_radix(f, last - first, &sorted_rows);
    *order = sorted_rows;
    held->bytes = ok ? (size_t)n * sizeof(**order) : 0;
    f->spill->held += held->bytes;
    return ok;
}
