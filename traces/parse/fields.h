/* SPDX-License-Identifier: Apache-2.0
 * What the careful readers of JSON lines share: a parsed row, its members, and errors that name
 * the field and show what was in it. */
#ifndef KVC_TRACES_FIELDS_H
#define KVC_TRACES_FIELDS_H

#include "base/json.h"
#include "traces/import/import.h"

struct kvc_place {
    const char *file;
    uint64_t line;
};

/* Each returns KVC_ERR_INPUT. */
enum kvc_status kvc_field_wrong(const struct kvc_place *at, const char *field,
                                const struct kvc_jval *v, const char *rule, struct kvc_error *err);
enum kvc_status kvc_field_missing(const struct kvc_place *at, const char *field,
                                  struct kvc_error *err);
/* The member unless it is absent or null. */
const struct kvc_jval *kvc_field_member(const struct kvc_jval *root, const char *key);
/* A count of tokens, least 0 or 1. */
enum kvc_status kvc_field_tokens(const struct kvc_place *at, const char *field,
                                 const struct kvc_jval *root, uint64_t least, uint32_t *out,
                                 struct kvc_error *err);
/* A name, absent when the member is; one given as a whole number is its digits, in number[]. */
enum kvc_status kvc_field_name(const struct kvc_place *at, const char *field,
                               const struct kvc_jval *root, char number[24], struct kvc_span *out,
                               struct kvc_error *err);
/* A point of time, as kvc_import_time: what an arrival should be read with. */
enum kvc_status kvc_field_when(struct kvc_import *im, const struct kvc_place *at,
                               const char *field, const struct kvc_jval *v,
                               enum kvc_time_unit usual, uint64_t *ns, struct kvc_error *err);
/* A time: a number of units, 0 or more, as a number or in text (exact when whole or in text), or
 * a date and time in text; see timestamp.h. */
enum kvc_status kvc_field_time(const struct kvc_place *at, const char *field,
                               const struct kvc_jval *v, enum kvc_time_unit unit, uint64_t *ns,
                               struct kvc_error *err);
/* One JSON object of a size that is safe to parse; the caller frees it. *root NULL on failure. */
enum kvc_status kvc_row_parse(struct kvc_jval **root, const char *text, size_t n,
                              const struct kvc_place *at, struct kvc_error *err);
/* The engine that served a row, by the names such a field usually has; of another kind than a name
 * it is no such field. */
void kvc_field_instance(const struct kvc_jval *root, char number[24], struct kvc_span *out);
/* What the fields that the user chose say of the row: its tenant, and whose its block ids are. */
enum kvc_status kvc_field_chosen(struct kvc_import *im, const struct kvc_place *at,
                                 const struct kvc_jval *root, char number[2][24],
                                 struct kvc_log_row *row, struct kvc_error *err);
/* kvc_json_parse for what logs hold: NUL and halves of surrogate pairs, from texts cut within a
 * character, are taken as U+FFFD. */
enum kvc_status kvc_log_json(struct kvc_jval **root, const char *text, size_t n, const char *file,
                             uint64_t line, struct kvc_error *err);
/* One JSON value of a size that is safe to parse. */
enum kvc_status kvc_row_parse_any(struct kvc_jval **root, const char *text, size_t n,
                                  const struct kvc_place *at, struct kvc_error *err);
/* A list of block ids behind the from ids there are: numbers of either sign, exact to 64 bits, or
 * text, which im numbers (without it, text is refused). *text_ids is set when from is 0 and there
 * is an id, and must hold for all others. */
enum kvc_status kvc_field_ids(const struct kvc_place *at, const char *field,
                              const struct kvc_jval *list, struct kvc_import *im,
                              struct kvc_id_buffer *ids, size_t from, size_t *n, bool *text_ids,
                              struct kvc_error *err);

#endif
