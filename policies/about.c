/* SPDX-License-Identifier: Apache-2.0
 * What is to be said of the policies without time, in a line each. */
#include "base/units.h"
#include "policies/policies.h"

static const struct kvc_policy_about table[] = {
    {"lru", "touched longest ago", NULL, true},
    {"fifo", "stored longest ago", NULL, false},
    {"lfu", "fewest touches since stored", NULL, true},
    {"plfu", "fewest touches ever", NULL, true},
    {"lenaware", "deepest in its request", NULL, true},
    {"sieve", "first not visited since the hand passed", "Zhang et al., NSDI 2024", false},
    {"s3fifo", "small queue, main queue, ghosts", "Yang et al., SOSP 2023", false},
    {"twoq", "in queue, main LRU, out ghosts", "Johnson and Shasha, VLDB 1994", false},
    {"arc", "recent and frequent lists, size learned from ghosts", "Megiddo and Modha, FAST 2003",
     false},
    {"ttl", "as lru, and untouched for a time", "Anthropic's prompt cache", true},
    {"ttlfixed", "as fifo, and stored a time ago", NULL, false},
    {"lruk", "touch number K from the last back longest ago, none first",
     "O'Neil et al., SIGMOD 1993", true},
    {"gdsf", "fewest touches since stored, above the last victim's figure", "Cherkasova, HP 1998",
     true},
    {"hyperbolic", "fewest touches by requests since stored", "Blankstein et al., ATC 2017", false},
    {"wtinylfu", "leaves a window, asked for no more often than the oldest on probation",
     "Einziger et al., TOS 2017", false},
    {"watermark", "as lru, in batches from a mark on", "Mooncake's store", true},
    {"random", "any block", NULL, false},
    {"radix", "whole leaf node of the request tree touched longest ago", "SGLang", true},
    {"costaware", "leaf block of least touches x recompute time, above the last victim's figure",
     "gdsf on leaves", true},
    {"lirs", "longest in the queue of blocks whose last two uses were not close together",
     "Jiang and Zhang, SIGMETRICS 2002", false},
    {"lecar", "victim of lru or of lfu, by weights learned from what is regretted",
     "Vietri et al., HotStorage 2018", false},
    {"priority", "released longest ago of the lowest level, with all below it", "TensorRT-LLM",
     true},
    {"thinktime", "deepest of the session whose expected return is farthest", NULL, true},
    {"opt", "the best there can be: used again last; also refuses a block that is",
     "Belady 1966, with bypass", true},
    {"optforced", "used again last of those before the newcomer", "Belady 1966, without bypass",
     false},
};

const struct kvc_policy_about *kvc_policy_about(const char *name)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (kvc_name_equal(table[i].name, name))
            return &table[i];
    return NULL;
}
