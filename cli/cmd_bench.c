/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/outfile.h"
#include "base/units.h"
#include "bench/measure.h"
#include "cli/calibrate/profile_report.h"
#include "models/models.h"
#include "models/profiles.h"
#include "studies/calibrate/profile_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NOISY 0.2 /* spread of repeats from which on a figure is marked */

static const struct kvc_cli_option options[] = {
    {"o", "PROFILE.json", NULL, "write what was measured as a profile, - for stdout"},
    {"output", "PROFILE.json", NULL, "the same"},
    {"quick", NULL, NULL, "fewer sizes and repeats: some ten seconds"},
    {"only", "LIST", "all", "memory, files, zstd, gpu; apart by commas"},
    {"dir", "FOLDER", "$TMPDIR or /tmp",
     "where the file lies that is read: on the drive in question"},
    {"file-size", "SIZE", "1GiB, quick 256MiB", "of that file"},
    {"link", "NAME", "nvme-gen5-x4", "the link that the file reads are about"},
    {"gpu", "NAME", NULL, "the GPU beside which this is measured ('kvcast show hardware')"},
    {"like", "NAME", NULL,
     "in place of --gpu, for one that is not listed: the GPU most like it, whose kernels, scaled "
     "to what is measured, stand in for all that are not"},
    {"backend", "NAME", "vllm", "the engine whose kernels those are: vllm, sglang or trtllm"},
    {"device", "N", "0", "which GPU, as CUDA counts them"},
    {"copies", "METHOD", "kernel",
     "whose copies of blocks the profile states: kernel (a gather kernel, as LMCache) or dma (one "
     "copy a block)"},
    {NULL, NULL, NULL, NULL},
};

static const struct {
    const char *name;
    enum kvc_status (*run)(const struct kvc_bench_options *, const struct kvc_bench_sink *,
                           struct kvc_error *);
} parts[] = {{"memory", kvc_bench_memory},
             {"files", kvc_bench_files},
             {"zstd", kvc_bench_zstd},
             {"gpu", kvc_bench_gpu}};
#define N_PARTS (sizeof parts / sizeof parts[0])

struct bench {
    struct kvc_cli *cli;
    const struct kvc_gpu *gpu;
    bool stands_in; /* for the device, which is another */
    const char *backend;
    const char *storage; /* link of the file reads */
    FILE *out;           /* the table; NULL: none */
    const char *heading;
    struct kvc_readings readings;
    struct kvc_own_kernels own;
    struct kvc_json kernels, more; /* measurements of step times, and of neither these nor links */
    struct kvc_text notes;
    size_t rows, noisy;
    bool nomem;
};

/* ---- what the measuring says ---- */

static void print_row(struct bench *b, const struct kvc_bench_row *r)
{
    char value[48];

    if (!b->out)
        return;
    if (!b->heading || strcmp(b->heading, r->what) != 0)
        fprintf(b->out, "%s\n", r->what);
    b->heading = r->what;
    if (r->ns > 0 && r->rate > 0)
        snprintf(value, sizeof value, "%9.2f us  %8.1f %s", r->ns / 1e3,
                 r->rate / (r->kernel.m ? 1e12 : 1e9), r->kernel.m ? "TFLOP/s" : "GB/s");
    else if (r->ns > 0)
        snprintf(value, sizeof value, "%9.2f us", r->ns / 1e3);
    else
        snprintf(value, sizeof value, "%9.3f GB/s", r->rate / 1e9);
    fprintf(b->out, "  %-52s %s  spread %3.0f %%%s", r->how, value, r->spread * 100,
            r->spread > NOISY ? " (noisy)" : "");
    if (r->ratio > 0)
        fprintf(b->out, "  packed to %.1f %%", 100 / r->ratio);
    fputc('\n', b->out);
    fflush(b->out);
}

/* With the columns of 'kvcast calibrate --kernels'. */
static void add_kernel(struct bench *b, const struct kvc_bench_row *r)
{
    const struct kvc_bench_kernel *k = &r->kernel;
    struct kvc_json *j = &b->kernels;

    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "family", k->family);
    kvc_json_string(j, "kernel", k->name);
    if (k->m) {
        kvc_json_string(j, "gemm_dtype", k->dtype);
        kvc_json_u64(j, "m", k->m);
        kvc_json_u64(j, "n", k->n);
        kvc_json_u64(j, "k", k->k);
    } else {
        kvc_json_string(j, "attn_dtype", "bfloat16");
        kvc_json_string(j, "kv_cache_dtype", k->dtype);
        kvc_json_u64(j, "head_dim", k->head_dim);
        kvc_json_u64(j, "num_heads", k->heads);
        kvc_json_u64(j, "num_key_value_heads", k->kv_heads);
        kvc_json_u64(j, "batch_size", k->sequences);
        kvc_json_u64(j, "isl", k->context);
        kvc_json_u64(j, "step", 0);
    }
    if (k->bound)
        kvc_json_bool(j, "bound", true);
    kvc_json_double(j, "ns", kvc_readings_rounded(r->ns));
    kvc_json_double(j, "spread", kvc_readings_rounded(r->spread));
    kvc_json_close(j);
}

static void add_more(struct bench *b, const struct kvc_bench_row *r)
{
    struct kvc_json *j = &b->more;

    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "what", r->what);
    kvc_json_string(j, "how", r->how);
    if (r->op_bytes > 0)
        kvc_json_double(j, "op_bytes", r->op_bytes);
    if (r->ns > 0)
        kvc_json_double(j, "ns", r->ns);
    if (r->rate > 0)
        kvc_json_double(j, r->ns > 0 ? "flops_per_s" : "bytes_per_s", r->rate);
    if (r->ratio > 0)
        kvc_json_double(j, "ratio", r->ratio);
    kvc_json_double(j, "spread", r->spread);
    kvc_json_u64(j, "repeats", r->repeats);
    kvc_json_close(j);
}

static void take_note(void *user, const char *text)
{
    struct bench *b = user;

    if (!b->notes.buf || !strstr(b->notes.buf, text))
        kvc_text_addf(&b->notes, "%s\n", text);
}

static void take_device(void *user, const struct kvc_bench_device *d)
{
    struct bench *b = user;
    struct kvc_readings_device *to = &b->readings.device;

    if (!b->stands_in)
        return;
    snprintf(to->gpu, sizeof to->gpu, "%s", b->gpu->id);
    snprintf(to->name, sizeof to->name, "%s", d->name);
    to->memory_bytes = d->memory_bytes;
    to->multiprocessors = d->multiprocessors;
}

static bool take_row(void *user, const struct kvc_bench_row *r)
{
    struct bench *b = user;
    const char *link = !r->link ? NULL : strcmp(r->link, "storage") == 0 ? b->storage
                       : b->gpu ? b->gpu->host_link : NULL;

    print_row(b, r);
    b->rows++;
    b->noisy += r->spread > NOISY;
    if (r->link && !link)
        take_note(b, "the host link is not in the profile's links: name its GPU with --gpu");
    if (!link) {
        if (r->kernel.family)
            add_kernel(b, r);
        else
            add_more(b, r);
        return true;
    }
    struct kvc_reading reading = {.direction = r->write ? KVC_FROM_GPU : KVC_TOWARDS_GPU,
                                  .batch = r->batch, .op_bytes = r->op_bytes, .depth = r->depth,
                                  .bytes_per_s = r->rate, .spread = r->spread};
    snprintf(reading.link, sizeof reading.link, "%s", link);
    reading.both = r->both;
    reading.bytes_per_s /= r->both ? 2 : 1; /* half of it each way */
    b->nomem |= kvc_readings_row(&b->readings, &reading, NULL) != KVC_OK;
    reading.direction = KVC_FROM_GPU;
    if (r->both)
        b->nomem |= kvc_readings_row(&b->readings, &reading, NULL) != KVC_OK;
    return !b->nomem;
}

/* ---- what is to be measured ---- */

static bool is_wanted(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || !at[n]))
            return true;
    return !list;
}

static int check_list(const struct kvc_cli *cli, const char *list)
{
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t n = strcspn(at, ","), i = 0;
        while (i < N_PARTS && (strlen(parts[i].name) != n || strncmp(parts[i].name, at, n) != 0))
            i++;
        if (i == N_PARTS)
            return kvc_cli_usage(cli, "--only %s: memory, files, zstd and gpu can be measured",
                                 list);
    }
    return KVC_EXIT_OK;
}

static int read_options(struct bench *b, struct kvc_bench_options *o)
{
    const char *size = kvc_cli_value(b->cli, "file-size"), *gpu = kvc_cli_value(b->cli, "gpu");
    const char *link = kvc_cli_value(b->cli, "link"), *device = kvc_cli_value(b->cli, "device");
    const char *copies = kvc_cli_value(b->cli, "copies"), *like = kvc_cli_value(b->cli, "like");
    const char *backend = kvc_cli_value(b->cli, "backend");
    struct kvc_error err = {0};
    uint64_t n = 0;

    if (kvc_cli_count(b->cli))
        return kvc_cli_usage(b->cli,
                             "bench measures this machine and reads no file; 'kvcast calibrate' "
                             "does");
    if (size && kvc_parse_bytes(size, "file-size", &o->file_bytes, &err) != KVC_OK)
        return kvc_cli_usage(b->cli, "--file-size %s", err.text);
    if (size && o->file_bytes < KVC_BENCH_LEAST_FILE)
        return kvc_cli_usage(b->cli, "--file-size %s: a file below 32 MiB may lie in the drive's "
                                     "own cache; give more", size);
    if (gpu && like)
        return kvc_cli_usage(b->cli, "--gpu says which GPU this is, --like that it is none of "
                                     "those listed: give one of them");
    if ((gpu || like) && !(b->gpu = kvc_gpu_find(gpu ? gpu : like)))
        return kvc_cli_usage(b->cli, "no GPU is called %s ('kvcast show hardware' lists them; "
                                     "--like names the one that another is most like)",
                             gpu ? gpu : like);
    if (backend && !kvc_engine_find(backend))
        return kvc_cli_usage(b->cli, "--backend %s: vllm, sglang or trtllm is expected", backend);
    b->backend = backend ? kvc_engine_find(backend)->backend : "vllm";
    b->stands_in = like != NULL;
    if (link && !kvc_link_find(link))
        return kvc_cli_usage(b->cli, "no link is called %s ('kvcast show link' lists them)", link);
    if (device && (kvc_parse_u64(device, "device", &n, NULL) != KVC_OK || n > 1023))
        return kvc_cli_usage(b->cli, "--device %s: a whole number is expected", device);
    if (copies && strcmp(copies, "kernel") != 0 && strcmp(copies, "dma") != 0)
        return kvc_cli_usage(b->cli, "--copies %s: kernel or dma is expected", copies);
    b->storage = link ? kvc_link_find(link)->name : "nvme-gen5-x4";
    o->quick = kvc_cli_flag(b->cli, "quick");
    o->folder = kvc_cli_value(b->cli, "dir");
    o->gpu = (uint32_t)n;
    o->dma = copies && strcmp(copies, "dma") == 0;
    return check_list(b->cli, kvc_cli_value(b->cli, "only"));
}

static void put_machine(struct bench *b, struct kvc_json *j, bool quick)
{
    struct kvc_bench_machine m;
    time_t now = time(NULL);
    struct tm tm;
    char date[32] = "";

    kvc_bench_machine(&m);
    if (gmtime_r(&now, &tm))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &tm);
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "date", date);
    kvc_json_string(j, "cpu", m.cpu);
    kvc_json_u64(j, "cpus", m.cpus);
    kvc_json_u64(j, "numa_nodes", m.nodes);
    kvc_json_bool(j, "virtual", m.hypervisor);
    kvc_json_double(j, "load", m.load);
    kvc_json_bool(j, "quick", quick);
    kvc_json_close(j);
    if (m.hypervisor)
        take_note(b, "this is a virtual machine: its neighbours and its host's limits are in the "
                     "figures");
    if (m.load > 0.5 * m.cpus) {
        char text[96];
        snprintf(text, sizeof text, "the load was %.1f on %u CPUs: others ran at the same time",
                 m.load, m.cpus);
        take_note(b, text);
    }
    if (b->noisy) {
        char text[128];
        snprintf(text, sizeof text,
                 "%zu of %zu figures are noisy: their repeats lie more than %.0f %% apart",
                 b->noisy, b->rows, NOISY * 100);
        take_note(b, text);
    }
}

static enum kvc_status run_parts(struct bench *b, const struct kvc_bench_options *o,
                                 struct kvc_error *err)
{
    const struct kvc_bench_sink sink = {b, take_row, take_note, take_device};
    const char *only = kvc_cli_value(b->cli, "only");

    for (size_t i = 0; i < N_PARTS; i++) {
        struct kvc_error why = {0};
        enum kvc_status status =
            is_wanted(only, parts[i].name) ? parts[i].run(o, &sink, &why) : KVC_OK;
        if (b->nomem)
            return kvc_fail_nomem(err);
        if (status == KVC_ERR_UNSUPPORTED && !only)
            take_note(b, why.text);
        else if (status != KVC_OK) {
            *err = why;
            return status;
        }
    }
    return KVC_OK;
}

/* What was measured becomes what a profile's kernels become. */
static enum kvc_status fit_kernels(struct bench *b, struct kvc_error *err)
{
    struct kvc_readings *r = &b->readings;
    struct kvc_jval *list = NULL;
    enum kvc_status status = KVC_OK;

    kvc_json_close(&b->kernels);
    if (b->kernels.failed)
        return kvc_fail_nomem(err);
    status = kvc_json_parse(&list, b->kernels.buf, b->kernels.len, false, "this machine", 1, err);
    for (const struct kvc_jval *v = list ? kvc_jval_first(list) : NULL; v && status == KVC_OK;
         v = kvc_jval_next(v))
        status = kvc_readings_kernel(r, v, err);
    kvc_json_free(list);
    if (r->n_kernels && !b->gpu)
        take_note(b, "step times take no notice of kernels of an unnamed GPU: name it with --gpu, "
                     "or the one that it is most like with --like");
    if (status != KVC_OK || !r->n_kernels || !b->gpu)
        return status;
    return kvc_own_kernels_fit(&b->own, r->kernel, r->n_kernels, b->gpu, b->backend, b->stands_in,
                               "kvcast bench", err);
}

static enum kvc_status finish(struct bench *b, bool quick, const char *out, struct kvc_error *err)
{
    struct kvc_link_fits links = {0};
    struct kvc_json machine;
    struct kvc_profile_parts p = {.gpu = b->gpu ? b->gpu->id : NULL, .readings = &b->readings,
                                  .links = &links, .kernels = &b->own};
    enum kvc_status status = fit_kernels(b, err);
    char *profile = NULL;

    kvc_json_init(&machine, true);
    put_machine(b, &machine, quick);
    kvc_json_close(&b->more);
    p.machine = machine.buf;
    p.more = b->more.buf;
    if (status == KVC_OK && (machine.failed || b->more.failed))
        status = kvc_fail_nomem(err);
    if (status == KVC_OK && b->readings.n)
        status = kvc_link_fits_run(&links, &b->readings, b->gpu ? b->gpu->host_link : NULL, err);
    if (status == KVC_OK && (out || kvc_cli_json(b->cli)))
        status = kvc_profile_text(&profile, &p, err);
    if (status == KVC_OK && out)
        status = kvc_profile_put(profile, out, err);
    if (status == KVC_OK && kvc_cli_json(b->cli) && (!out || strcmp(out, "-") != 0))
        status = kvc_profile_put(profile, "-", err);
    if (status == KVC_OK && b->out) {
        kvc_profile_print_links(b->out, &links);
        kvc_profile_print_kernels(b->out, &b->own);
        if (b->notes.buf)
            fprintf(b->out, "Notes\n%s", b->notes.buf);
    }
    kvc_json_clear(&machine);
    kvc_link_fits_clear(&links);
    kvc_free(profile);
    return status;
}

static int run(struct kvc_cli *cli)
{
    static const struct kvc_reader self = {.name = "kvcast bench", .what = "this machine"};
    struct bench b = {.cli = cli};
    struct kvc_bench_options o = {0};
    struct kvc_error err = {0};
    const char *out =
        kvc_cli_value(cli, "o") ? kvc_cli_value(cli, "o") : kvc_cli_value(cli, "output");
    bool on_stdout = kvc_cli_json(cli) || (out && strcmp(out, "-") == 0);
    int rc = read_options(&b, &o);

    if (rc != KVC_EXIT_OK)
        return rc;
    b.out = kvc_cli_quiet(cli) ? NULL : on_stdout ? stderr : stdout;
    kvc_json_init(&b.more, true);
    kvc_json_open_array(&b.more, NULL);
    kvc_json_init(&b.kernels, false);
    kvc_json_open_array(&b.kernels, NULL);
    enum kvc_status status = out ? kvc_outfile_try(out, &err) : KVC_OK;
    if (status == KVC_OK && !kvc_grow((void **)&b.readings.file, &b.readings.cap_files, 1,
                                      sizeof *b.readings.file))
        status = kvc_fail_nomem(&err);
    if (status == KVC_OK) {
        b.readings.file[b.readings.n_files++] = (struct kvc_readings_file){
            .path = "this machine", .name = "this machine", .reader = &self};
        status = run_parts(&b, &o, &err);
    }
    if (status == KVC_OK)
        status = finish(&b, o.quick, out, &err);
    kvc_readings_clear(&b.readings);
    kvc_own_kernels_clear(&b.own);
    kvc_json_clear(&b.more);
    kvc_json_clear(&b.kernels);
    kvc_text_clear(&b.notes);
    return status == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}

static const char *const outputs[] = {"o", "output", NULL};

const struct kvc_cli_command kvc_cmd_bench = {
    .name = "bench",
    .arguments = "[-o PROFILE.json] [--quick] [--dir FOLDER]",
    .summary = "measure this machine: memory, storage, zstd, and its GPU",
    .description =
        "Measures memory copies by threads and NUMA node, reads and writes of a file of its own "
        "past "
        "the page cache by size and by how many are under way (io_uring), and zstd on what KV "
        "looks "
        "like. Built with 'make cuda', on a machine with a GPU: copies between host and GPU in one "
        "piece and in blocks, matrix products, paged decode attention and conversion to fp8. Every "
        "figure is the median of its repeats; their spread stands beside it.\n"
        "The profile states what the storage, the host link and the GPU's kernels take, fitted as "
        "'kvcast calibrate' does, and holds all measurements. A scenario names it with --profile.\n"
        "\nkvcast bench --dir /mnt/nvme0 --gpu h100-sxm -o my.json\n\n"
        "A GPU that 'kvcast show hardware' does not list, from its kernels to a replay:\n"
        "make cuda\n"
        "kvcast bench --like rtx-pro-6000 -o my.json\n"
        "kvcast replay log.jsonl --model llama-3.1-8b --gpu rtx-pro-6000 --profile my.json",
    .options = options,
    .outputs = outputs,
    .run = run,
};
