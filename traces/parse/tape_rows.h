/* SPDX-License-Identifier: Apache-2.0
 * Rows of formats with text on a tape: fast where a row is plain, by the tree where it isn't, both
 * where readers are compared. */
#ifndef KVC_TRACES_TAPE_ROWS_H
#define KVC_TRACES_TAPE_ROWS_H

#include "traces/parse/fields.h"
#include "traces/parse/json_tape.h"

struct kvc_tape_rows { /* all zero = empty */
    struct kvc_tape fast, slow;
    struct kvc_jval *root;
    char *text; /* room for names to be decoded in */
    size_t n_text, text_cap;
};

/* The object in text (a line, as in kvc_tape_scan). *tape is good until the next call. */
enum kvc_status kvc_tape_row(struct kvc_tape_rows *r, struct kvc_import *im, const char *text,
                             size_t n, const struct kvc_tape **tape, bool *odd,
                             struct kvc_error *err);
void kvc_tape_rows_clear(struct kvc_tape_rows *r);

/* What the value v holds, called field in errors; v 0: absent, *out stays as it is. A name is a
 * text or a whole number, and good until the next row. */
enum kvc_status kvc_tape_name(struct kvc_tape_rows *r, const struct kvc_tape *t, uint32_t v,
                              const char *field, const struct kvc_place *place,
                              struct kvc_span *out, struct kvc_error *err);
enum kvc_status kvc_tape_tokens(const struct kvc_tape *t, uint32_t v, const char *field,
                                const struct kvc_place *place, uint32_t *out, bool *stated,
                                struct kvc_error *err);
enum kvc_status kvc_tape_when(struct kvc_import *im, const struct kvc_tape *t, uint32_t v,
                              const char *field, enum kvc_time_unit usual,
                              const struct kvc_place *place, uint64_t *ns, struct kvc_error *err);
/* The member of the object at; 0 and an error where it isn't a text. */
uint32_t kvc_tape_text(const struct kvc_tape *t, uint32_t at, const char *key,
                       const struct kvc_place *place, struct kvc_error *err);

#endif
