/* SPDX-License-Identifier: Apache-2.0
 * Reads a CSV file, plain or .zst, row by row, for tests on measured rows outside the repository.
 */
#ifndef KVC_TESTS_MODELS_CSV_H
#define KVC_TESTS_MODELS_CSV_H

#include <stdbool.h>
#include <stddef.h>

#define TEST_CSV_COLUMNS 64

struct test_csv {
    char *text, *next;
    char *header[TEST_CSV_COLUMNS], *cell[TEST_CSV_COLUMNS];
    size_t columns;
};

bool test_csv_open(struct test_csv *csv, const char *path);               /* false: not there */
bool test_csv_row(struct test_csv *csv);                                  /* false: the end */
const char *test_csv_get(const struct test_csv *csv, const char *column); /* "" when absent */
double test_csv_number(const struct test_csv *csv, const char *column);
void test_csv_close(struct test_csv *csv);

#endif
