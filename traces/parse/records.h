/* SPDX-License-Identifier: Apache-2.0
 * Records of exports that come as JSON (lines, a list or documents) or as CSV, all as one JSON
 * object each: columns become members of text, empty ones none. */
#ifndef KVC_TRACES_RECORDS_H
#define KVC_TRACES_RECORDS_H

#include "base/text.h"
#include "traces/parse/csv_rows.h"
#include "traces/parse/fields.h"
#include "traces/parse/json_rows.h"

struct kvc_records {
    struct kvc_import *im;
    bool is_csv;
    struct kvc_json_rows json;
    struct kvc_csv csv;
    struct kvc_text text; /* of a CSV row made JSON */
    struct kvc_place at;  /* of the current record */
};

/* Opens what the import is at; clear it in any case. */
enum kvc_status kvc_records_open(struct kvc_records *r, struct kvc_import *im,
                                 struct kvc_error *err);
void kvc_records_clear(struct kvc_records *r);
/* The next record, which the caller frees with kvc_json_free; *root NULL at the end. Bad rows were
 * counted. */
enum kvc_status kvc_records_next(struct kvc_records *r, struct kvc_jval **root,
                                 struct kvc_error *err);

/* Hands all of them to one, with user, until it fails; opens and clears. */
enum kvc_status kvc_records_each(struct kvc_import *im,
                                 enum kvc_status (*one)(struct kvc_records *r, void *user,
                                                        const struct kvc_jval *root,
                                                        struct kvc_error *err),
                                 void *user, struct kvc_error *err);

/* ---- what is in one ---- */

/* The first of several names, "start_time|startTime", that is there and not null or "". *field, if
 * not NULL, gets that name, else the first. */
const struct kvc_jval *kvc_record_any(const struct kvc_jval *root, const char *names,
                                      char field[64]);
/* A member by path, "metadata.usage_object": a member of that very name, else one by one, through
 * texts that hold JSON too, which are parsed then. NULL: absent, null or "". *parsed, NULL before
 * the first call, is the caller's to free when done with the value. */
const struct kvc_jval *kvc_record_at(const struct kvc_jval *root, const char *path,
                                     struct kvc_jval **parsed);
/* A member of text or a number, by any of several names. number[] as in kvc_field_name. */
enum kvc_status kvc_record_name(const struct kvc_place *at, const char *names,
                                const struct kvc_jval *root, char number[24],
                                struct kvc_span *out, struct kvc_error *err);
/* true, "True", "1": yes. Absent, and any other word: no. */
bool kvc_record_yes(const struct kvc_jval *v);
/* The object or list itself, or the one that the text holds, in *parsed for the caller to free.
 * NULL: neither. */
const struct kvc_jval *kvc_record_json(const struct kvc_jval *v, struct kvc_jval **parsed);
/* The tenant: the user's --tenant-field, a path as above, else the usual member. */
enum kvc_status kvc_record_tenant(struct kvc_import *im, const struct kvc_place *at,
                                  const char *usual, const struct kvc_jval *root, char number[24],
                                  struct kvc_jval **parsed, struct kvc_span *out,
                                  struct kvc_error *err);
/* A number, also in text. */
bool kvc_record_double(const struct kvc_jval *v, double *out);
/* A point of time: a date, or seconds since 1970 unless the numbers tell another unit. */
static inline enum kvc_status kvc_record_when(struct kvc_import *im, const struct kvc_place *at,
                                              const char *field, const struct kvc_jval *v,
                                              uint64_t *ns, struct kvc_error *err)
{
    return kvc_field_when(im, at, field, v, KVC_UNIT_S, ns, err);
}

#endif
