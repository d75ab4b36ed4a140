/* SPDX-License-Identifier: Apache-2.0
 * Python values as engines' logs print them: repr() of strings, lists, dicts and dataclasses. */
#ifndef KVC_TRACES_PY_REPR_H
#define KVC_TRACES_PY_REPR_H

#include "base/text.h"
#include "traces/import/import.h"

struct kvc_py {
    const char *p, *end;
};

/* The next value, to the comma or bracket behind it; false at the end or at a closing bracket. */
bool kvc_py_value(struct kvc_py *w, struct kvc_span *value);
/* The next "key=value" or "key: value" and the comma behind it; quotes are taken off the key. */
bool kvc_py_member(struct kvc_py *w, char separator, struct kvc_span *key, struct kvc_span *value);
/* What is within the value's brackets, behind a class's name if any. False: no brackets. */
bool kvc_py_inside(const struct kvc_span *value, struct kvc_py *w);
bool kvc_py_is(const struct kvc_span *span, const char *word);
/* The characters of a whole string, appended as UTF-8, and their number. False: not a string, or
 * cut ('abc' ... 'xyz'). */
bool kvc_py_string(const struct kvc_span *value, struct kvc_text *out, size_t *characters);
/* A whole list of token ids. False: something else, or cut. KVC_ID_NONE in *n: no memory. */
bool kvc_py_ids(const struct kvc_span *value, struct kvc_id_buffer *ids, size_t *n);
bool kvc_py_u64(const struct kvc_span *value, uint64_t *out);
bool kvc_py_double(const struct kvc_span *value, double *out);

#endif
