/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/import/salt.h"

#include "base/error.h"
#include "base/siphash.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define LEAST 16 /* bytes, as SipHash takes */

enum kvc_status kvc_salt_read(const char *path, uint64_t key[2], struct kvc_error *err)
{
    unsigned char buf[4096];
    struct kvc_sip a, b;
    struct stat st;
    uint64_t total = 0;
    size_t n;
    if (!path) {
        if (getrandom(key, 2 * sizeof(*key), 0) != (ssize_t)(2 * sizeof(*key)))
            return kvc_fail(err, KVC_ERR_IO, "no random numbers from the system (%s); name a key "
                            "with --salt-file", strerror(errno));
        return KVC_OK;
    }
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) != 0 || S_ISDIR(st.st_mode)) {
        const char *why = strerror(errno);
        if (f)
            fclose(f);
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, "--salt-file",
                           "can't be read: %s; a file of %d bytes or more is expected",
                           f ? "it is a directory" : why, LEAST);
    }
    kvc_sip_start(&a, 0, 1);
    kvc_sip_start(&b, 1, 0);
    while ((n = fread(buf, 1, sizeof(buf), f)) > 0 && total < (uint64_t)1 << 30) {
        kvc_sip_bytes(&a, buf, n);
        kvc_sip_bytes(&b, buf, n);
        total += n;
    }
    bool broken = ferror(f) != 0;
    fclose(f);
    if (broken)
        return kvc_fail_at(err, KVC_ERR_IO, path, 0, "--salt-file", "can't be read");
    if (total < LEAST)
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, "--salt-file",
                           "%llu bytes are too few for a key: at least %d are needed, as from "
                           "head -c 32 /dev/urandom", (unsigned long long)total, LEAST);
    key[0] = kvc_sip_end(&a);
    key[1] = kvc_sip_end(&b);
    return KVC_OK;
}
