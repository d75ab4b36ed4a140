/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/tar.h"

#include "base/error.h"

#include <string.h>

#define BLOCK ((size_t)512)

struct header { /* POSIX ustar */
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
    char linkname[100], magic[6], version[2], uname[32], gname[32], major[8], minor[8];
    char prefix[155], rest[12];
};

void kvc_tar_init(struct kvc_tar *tar, struct kvc_import *im)
{
    memset(tar, 0, sizeof(*tar));
    tar->im = im;
}

void kvc_tar_init_stream(struct kvc_tar *tar, struct kvc_import *im, struct kvc_stream *stream)
{
    kvc_tar_init(tar, im);
    tar->stream = stream;
}

static enum kvc_status fail(const struct kvc_tar *tar, const char *what, struct kvc_error *err)
{
    kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(tar->im), 0, NULL,
                "the tar archive %s at byte %llu%s%s; fetch or pack it again", what,
                (unsigned long long)tar->offset, tar->name[0] ? ", in or after the member " : "",
                tar->name);
    if (err)
        err->byte = tar->offset;
    return KVC_ERR_INPUT;
}

/* Short only at the end of the archive. */
static enum kvc_status take(struct kvc_tar *tar, char *buf, size_t n, size_t *had,
                            struct kvc_error *err)
{
    size_t got = 1;
    enum kvc_status status = KVC_OK;
    for (*had = 0; *had < n && got && status == KVC_OK; *had += got) {
        got = 0;
        status = tar->stream ? kvc_stream_read(tar->stream, buf + *had, n - *had, &got, err)
                             : kvc_import_bytes(tar->im, buf + *had, n - *had, &got, err);
    }
    tar->offset += *had;
    return status;
}

static enum kvc_status take_all(struct kvc_tar *tar, char *buf, size_t n, struct kvc_error *err)
{
    size_t had;
    enum kvc_status status = take(tar, buf, n, &had, err);
    return status == KVC_OK && had < n ? fail(tar, "is cut short", err) : status;
}

static enum kvc_status pass_over(struct kvc_tar *tar, uint64_t n, struct kvc_error *err)
{
    char scratch[BLOCK * 16];
    enum kvc_status status = KVC_OK;
    for (size_t some; n && status == KVC_OK; n -= some) {
        some = n < sizeof(scratch) ? (size_t)n : sizeof(scratch);
        status = take_all(tar, scratch, some, err);
    }
    return status;
}

enum kvc_status kvc_tar_read(struct kvc_tar *tar, void *buf, size_t n, struct kvc_error *err)
{
    enum kvc_status status = take_all(tar, buf, n, err);
    tar->left -= n;
    return status;
}

enum kvc_status kvc_tar_some(struct kvc_tar *tar, void *buf, size_t n, size_t *got,
                             struct kvc_error *err)
{
    *got = n < tar->left ? n : (size_t)tar->left;
    return kvc_tar_read(tar, buf, *got, err);
}

/* Octal digits, or GNU's base 256 for what they can't hold. */
static bool number(const char *field, size_t n, uint64_t *out)
{
    size_t i = 0;
    *out = 0;
    if ((unsigned char)field[0] == 0x80) {
        for (i = 1; i < n; i++) {
            if (*out >> 55)
                return false;
            *out = *out << 8 | (unsigned char)field[i];
        }
        return true;
    }
    while (i < n && field[i] == ' ')
        i++;
    for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
        *out = *out << 3 | (uint64_t)(field[i] - '0');
    return i == n || field[i] == ' ' || field[i] == '\0';
}

static bool checksum_fits(const struct header *h)
{
    const unsigned char *bytes = (const unsigned char *)h;
    uint64_t stated, sum = 0;
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : bytes[i];
    return number(h->checksum, sizeof(h->checksum), &stated) && stated == sum;
}

static void set_name(struct kvc_tar *tar, const char *text, size_t n)
{
    n = strnlen(text, n);
    if (n >= sizeof(tar->name))
        n = sizeof(tar->name) - 1;
    memcpy(tar->name, text, n);
    tar->name[n] = '\0';
}

static void name_from_header(struct kvc_tar *tar, const struct header *h)
{
    char whole[sizeof(h->prefix) + sizeof(h->name) + 1];
    size_t n = memcmp(h->magic, "ustar", 6) == 0 ? strnlen(h->prefix, sizeof(h->prefix)) : 0;
    memcpy(whole, h->prefix, n);
    if (n)
        whole[n++] = '/';
    memcpy(whole + n, h->name, sizeof(h->name));
    set_name(tar, whole, n + sizeof(h->name));
}

/* "12 path=a/b\n" and so on: the length counts the whole record. */
static bool pax_records(struct kvc_tar *tar, const char *text, size_t n, bool *named)
{
    for (size_t at = 0; at < n && text[at];) {
        size_t length = 0, i = at;
        while (i < n && text[i] >= '0' && text[i] <= '9' && length < n)
            length = length * 10 + (size_t)(text[i++] - '0');
        if (i == at || i == n || text[i] != ' ' || length > n - at || at + length < i + 2)
            return false;
        const char *key = text + i + 1, *end = text + at + length - 1;
        if (end - key >= 5 && memcmp(key, "path=", 5) == 0) {
            set_name(tar, key + 5, (size_t)(end - key - 5));
            *named = true;
        } else if (end - key >= 5 && memcmp(key, "size=", 5) == 0) {
            tar->pax_size = 0;
            for (const char *p = key + 5; p < end && *p >= '0' && *p <= '9' &&
                                          tar->pax_size < UINT64_MAX / 16; p++)
                tar->pax_size = tar->pax_size * 10 + (uint64_t)(*p - '0');
        }
        at += length;
    }
    return true;
}

/* A member that describes the next one. */
static enum kvc_status extension(struct kvc_tar *tar, char type, uint64_t size, bool *named,
                                 struct kvc_error *err)
{
    char text[8192];
    size_t n = size < sizeof(text) ? (size_t)size : sizeof(text);
    if (size > sizeof(text))
        return fail(tar, "has a name or note of more than 8 KiB", err);
    enum kvc_status status = take_all(tar, text, n, err);
    if (status != KVC_OK)
        return status;
    if (type == 'L') {
        set_name(tar, text, n);
        *named = true;
    } else if (type == 'x' && !pax_records(tar, text, n, named)) {
        return fail(tar, "has a damaged pax header", err);
    }
    return pass_over(tar, (BLOCK - n % BLOCK) % BLOCK, err);
}

enum kvc_status kvc_tar_next(struct kvc_tar *tar, bool *more, struct kvc_error *err)
{
    struct header h;
    _Static_assert(sizeof(h) == BLOCK, "a header is one block");
    bool named = false;
    enum kvc_status status = pass_over(tar, tar->left + tar->padding, err);
    tar->pax_size = UINT64_MAX;
    *more = false;
    for (tar->left = tar->padding = 0; status == KVC_OK;) {
        uint64_t size;
        status = take_all(tar, (char *)&h, BLOCK, err);
        if (status != KVC_OK || !h.name[0])
            break; /* a block of zeros ends the archive */
        if (!checksum_fits(&h) || !number(h.size, sizeof(h.size), &size))
            return fail(tar, "has a damaged header", err);
        if (h.type == 'x' || h.type == 'L' || h.type == 'g' || h.type == 'K') {
            status = extension(tar, h.type, size, &named, err);
            continue;
        }
        if (!named)
            name_from_header(tar, &h);
        if (tar->pax_size != UINT64_MAX)
            size = tar->pax_size;
        if (size > (uint64_t)1 << 60)
            return fail(tar, "has a damaged header", err);
        bool link = h.type == '1' || h.type == '2';
        tar->left = tar->size = link ? 0 : size;
        tar->padding = (BLOCK - tar->size % BLOCK) % BLOCK;
        if (h.type == '0' || h.type == '\0' || h.type == '7') {
            *more = true;
            break;
        }
        status = pass_over(tar, tar->left + tar->padding, err);
        tar->left = tar->padding = 0;
        tar->pax_size = UINT64_MAX;
        named = false;
    }
    return status;
}
